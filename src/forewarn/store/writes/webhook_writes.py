"""Saving and removing webhooks."""

from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.store import tables
from forewarn.store.rows.stored import WEBHOOKS
from forewarn.store.writes.writer import Writer


class WebhookWrites(Writer):
    """Writes to webhooks."""

    def save_webhook(self, webhook: Webhook) -> None:
        """Save a webhook, new or known."""
        self._save(WEBHOOKS, [webhook])

    def remove_webhook(self, webhook: WebhookId) -> None:
        """Forget a webhook."""
        self._delete(tables.webhooks.c.id, [webhook.upper()])
