"""Webhooks."""

from collections.abc import Sequence

from forewarn.core.push import Webhook, WebhookId
from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.stored import WEBHOOKS
from forewarn.store.writes.writer import delete_rows, put

_W = tables.webhooks.c


class WebhookQueries(Reader):
    """What can be asked about webhooks."""

    def find(self, webhook: WebhookId) -> Webhook | None:
        """Find a webhook; ids in any case."""
        query = WEBHOOKS.select().where(_W.id == webhook.upper())
        return self._find(WEBHOOKS.read, self._mine(query, _W.owner))

    def page(
        self, *, project: ProjectName | None, after: str | None, limit: int
    ) -> tuple[Sequence[Webhook], str | None]:
        """List webhooks, oldest first; None lists those of all projects and of none."""
        query = self._mine(WEBHOOKS.select(), _W.owner)
        if project is not None:
            query = query.where(_W.project == project)
        return self._page(WEBHOOKS.read, query, (_W.number, _W.id), after=after, limit=limit)

    def count(self, *, owner: ProjectName | None = None) -> int:
        """Count a project's own webhooks; None counts all there are."""
        query = WEBHOOKS.select()
        return self._count(query if owner is None else query.where(_W.owner == owner))


class WebhookChanges(WebhookQueries):
    """The same, and what can be changed."""

    def save(self, webhook: Webhook) -> None:
        """Save a webhook, new or known."""
        put(self._connection, WEBHOOKS, [webhook])

    def remove(self, webhook: WebhookId) -> None:
        """Remove a webhook."""
        delete_rows(self._connection, _W.id, [webhook.upper()])
