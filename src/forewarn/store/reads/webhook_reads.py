"""Reading webhooks."""

from collections.abc import Sequence

from sqlalchemy import func, select

from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.reads.cursors import beyond, decode, page
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.webhook_rows import WEBHOOK_COLUMNS, webhook_of

_W = tables.webhooks.c


class WebhookReads(Reader):
    """What can be read of webhooks."""

    def webhook(self, webhook: WebhookId) -> Webhook | None:
        """Find a webhook; ids in any case."""
        query = select(*WEBHOOK_COLUMNS).where(_W.id == webhook.upper())
        rows = self._all(self._mine(query, _W.owner))
        return webhook_of(rows[0]) if rows else None

    def webhooks(
        self, *, project: ProjectName | None, after: str | None, limit: int
    ) -> tuple[Sequence[Webhook], str | None]:
        """List webhooks, oldest first; None lists those of all projects and of none."""
        place = None if after is None else decode(after, like=(int, str))
        query = self._mine(select(*WEBHOOK_COLUMNS), _W.owner)
        if project is not None:
            query = query.where(_W.project == project)
        rows = self._all(beyond(query, (_W.number, _W.id), place, limit=limit, newest=False))
        found = [webhook_of(row) for row in rows]
        return page(found, limit=limit, place=lambda webhook: (webhook.number, webhook.id))

    def count_webhooks(self, *, owner: ProjectName | None = None) -> int:
        """Count a project's own webhooks; None counts all there are, whoever asks."""
        query = select(func.count()).select_from(tables.webhooks)
        if owner is not None:
            query = query.where(_W.owner == owner)
        return int(self._connection.execute(query).scalar_one())
