"""Webhooks: where records are pushed to, and how far that has come."""

from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from forewarn.core.words import Kind, ProjectName

WebhookId = NewType("WebhookId", str)  # an upper-case GUID
# A receiver that restarts misses a try or two; that is not worth a line in the history.
TRIES_BEFORE_REPORTING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address that records are pushed to, in their order; each is kept until it is delivered."""

    id: WebhookId
    number: int  # of the record that says it was added; it is sent what came after
    url: str
    project: ProjectName | None  # whose records; None: the whole fleet's
    owner: ProjectName | None = None  # the project whose people keep it; None: the operators
    kinds: frozenset[Kind]  # nothing: all that are ever pushed
    secret: str
    by: str
    created_at: datetime
    delivered: int  # the number up to which everything has been delivered
    failures: int = 0  # tries in vain since the last success
    failing_since: datetime | None = None
    error: str = ""
    next_try: datetime | None = None  # real time: when it is called again after a failure

    @property
    def is_reported(self) -> bool:
        """Whether the history says that it is failing."""
        return self.failures >= TRIES_BEFORE_REPORTING
