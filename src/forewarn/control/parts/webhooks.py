"""How webhooks are kept."""

from collections.abc import Sequence
from typing import Protocol

from forewarn.core.push import Webhook, WebhookId
from forewarn.core.words import ProjectName


class WebhookQueries(Protocol):
    """Reads the webhooks that a project's people keep; all of them for the whole fleet."""

    def find(self, webhook: WebhookId) -> Webhook | None:
        """Find a webhook; ids in any case."""
        ...

    def page(
        self, *, project: ProjectName | None, after: str | None, limit: int
    ) -> tuple[Sequence[Webhook], str | None]:
        """List webhooks, oldest first: all, or those that are sent the records of a project alone."""
        ...

    def count(self, *, owner: ProjectName | None = None) -> int:
        """Count a project's own webhooks; None counts all there are, in any scope."""
        ...


class WebhookChanges(WebhookQueries, Protocol):
    """Reads, saves and forgets webhooks."""

    def save(self, webhook: Webhook) -> None:
        """Save a webhook, new or known."""
        ...

    def remove(self, webhook: WebhookId) -> None:
        """Forget a webhook."""
        ...
