"""How webhooks are read."""

from collections.abc import Sequence
from typing import Protocol

from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.core.words import ProjectName


class WebhookQueries(Protocol):
    """Reads the webhooks that a project's people keep; all of them for the whole fleet."""

    def webhook(self, webhook: WebhookId) -> Webhook | None:
        """Find a webhook; ids in any case."""
        ...

    def webhooks(
        self, *, project: ProjectName | None, after: str | None, limit: int
    ) -> tuple[Sequence[Webhook], str | None]:
        """List webhooks, oldest first: all, or those that are sent the records of a project alone."""
        ...

    def count_webhooks(self, *, owner: ProjectName | None = None) -> int:
        """Count a project's own webhooks; None counts all there are, in any scope."""
        ...
