"""Webhooks as rows, and back; see `fleet_rows` for the manner."""

from forewarn.core.model.webhook import Webhook
from forewarn.core.words import Kind
from forewarn.store import tables
from forewarn.store.rows.fleet_rows import Columns, Kept
from forewarn.store.rows.times import micros, micros_or_none, moment, moment_or_none

_W = tables.webhooks.c
WEBHOOK_COLUMNS = (
    *(_W.id, _W.number, _W.url, _W.project, _W.owner, _W.kinds, _W.secret, _W.by, _W.created_at),
    *(_W.delivered, _W.failures, _W.failing_since, _W.error),
)


def webhook_of(row: Kept) -> Webhook:
    """Read a webhook."""
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


def webhook_row(webhook: Webhook) -> Columns:
    """Write a webhook."""
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
