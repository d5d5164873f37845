"""Saving and removing webhooks."""

from sqlalchemy import delete

from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.webhook_rows import webhook_row
from forewarn.store.writes.upserts import upsert


class WebhookWrites(Reader):
    """Writes to webhooks."""

    def save_webhook(self, webhook: Webhook) -> None:
        """Save a webhook, new or known."""
        self._connection.execute(
            upsert(self._connection.dialect.name, tables.webhooks), [webhook_row(webhook)]
        )

    def remove_webhook(self, webhook: WebhookId) -> None:
        """Forget a webhook."""
        self._connection.execute(delete(tables.webhooks).where(tables.webhooks.c.id == webhook.upper()))
