"""How tokens and webhooks are read."""

from collections.abc import Sequence
from typing import Protocol

from forewarn.core.access import Token
from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.core.words import (
    ProjectName,
)


class AccessReads(Protocol):
    """Reads tokens and webhooks."""

    def webhook(self, webhook: WebhookId) -> Webhook | None:
        """Find a webhook; ids in any case."""
        ...

    def webhooks(
        self, *, project: ProjectName | None, after: str | None, limit: int
    ) -> tuple[Sequence[Webhook], str | None]:
        """List webhooks, oldest first; None lists those of all projects and of none."""
        ...

    def count_webhooks(self, *, owner: ProjectName | None = None) -> int:
        """Count a project's own webhooks; None counts all there are, whoever asks."""
        ...

    def tokens(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, the oldest first, revoked ones too."""
        ...

    def tokens_in_force(self) -> Sequence[Token]:
        """List the tokens that were not revoked, the oldest first; some may have expired."""
        ...

    def has_tokens(self) -> bool:
        """Say whether a token was ever made."""
        ...
