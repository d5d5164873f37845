"""Webhooks: as rows and back, read and written."""

from collections.abc import Sequence

from sqlalchemy import delete, func, select

from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.core.words import Kind, ProjectName
from forewarn.store import tables
from forewarn.store.cursors import beyond, decode, page
from forewarn.store.fleet_rows import Columns, Kept
from forewarn.store.reading import Reader
from forewarn.store.times import micros, micros_or_none, moment, moment_or_none
from forewarn.store.upserts import upsert

_W = tables.webhooks.c
_COLUMNS = (
    *(_W.id, _W.number, _W.url, _W.project, _W.owner, _W.kinds, _W.secret, _W.by, _W.created_at),
    *(_W.delivered, _W.failures, _W.failing_since, _W.error),
)


class WebhookLists(Reader):
    """What can be read of webhooks."""

    def webhook(self, webhook: WebhookId) -> Webhook | None:
        """Find a webhook; ids in any case."""
        query = select(*_COLUMNS).where(_W.id == webhook.upper())
        rows = self._all(self._mine(query, _W.owner))
        return _webhook_of(rows[0]) if rows else None

    def webhooks(
        self, *, project: ProjectName | None, after: str | None, limit: int
    ) -> tuple[Sequence[Webhook], str | None]:
        """List webhooks, oldest first; None lists those of all projects and of none."""
        place = None if after is None else decode(after, like=(int, str))
        query = self._mine(select(*_COLUMNS), _W.owner)
        if project is not None:
            query = query.where(_W.project == project)
        rows = self._all(beyond(query, (_W.number, _W.id), place, limit=limit, newest=False))
        found = [_webhook_of(row) for row in rows]
        return page(found, limit=limit, place=lambda webhook: (webhook.number, webhook.id))

    def count_webhooks(self, *, owner: ProjectName | None = None) -> int:
        """Count a project's own webhooks; None counts all there are, whoever asks."""
        query = select(func.count()).select_from(tables.webhooks)
        if owner is not None:
            query = query.where(_W.owner == owner)
        return int(self._connection.execute(query).scalar_one())


class WebhookWrites(Reader):
    """Writes to webhooks."""

    def save_webhook(self, webhook: Webhook) -> None:
        """Save a webhook, new or known."""
        self._connection.execute(
            upsert(self._connection.dialect.name, tables.webhooks), [_webhook_row(webhook)]
        )

    def remove_webhook(self, webhook: WebhookId) -> None:
        """Forget a webhook."""
        self._connection.execute(delete(tables.webhooks).where(_W.id == webhook.upper()))


def _webhook_of(row: Kept) -> Webhook:
    id_, number, url, project, owner, kinds, secret, by, created_at, *rest = row
    delivered, failures, failing_since, error = rest
    return Webhook(
        id=id_,
        number=number,
        url=url,
        project=project,
        owner=owner,
        kinds=frozenset(map(Kind, kinds)),
        secret=secret,
        by=by,
        created_at=moment(created_at),
        delivered=delivered,
        failures=failures,
        failing_since=moment_or_none(failing_since),
        error=error,
    )


def _webhook_row(webhook: Webhook) -> Columns:
    return {
        "id": webhook.id.upper(),
        "number": webhook.number,
        "url": webhook.url,
        "project": webhook.project,
        "owner": webhook.owner,
        "kinds": sorted(map(str, webhook.kinds)),
        "secret": webhook.secret,
        "by": webhook.by,
        "created_at": micros(webhook.created_at),
        "delivered": webhook.delivered,
        "failures": webhook.failures,
        "failing_since": micros_or_none(webhook.failing_since),
        "error": webhook.error,
    }
