"""What is kept of how webhooks are served."""

from collections.abc import Sequence
from datetime import timedelta

from forewarn.control.push.webhooks import MOST_WEBHOOKS, named
from forewarn.control.use_case import UseCase
from forewarn.core import push as rules
from forewarn.core.push import Webhook, WebhookId
from forewarn.core.words import Kind
from forewarn.store.batch import Transaction


class DeliveryState(UseCase):
    """The use cases of the pusher, which serves all webhooks."""

    def every(self) -> Sequence[Webhook]:
        """List all webhooks."""
        with self._store.read() as snapshot:
            return snapshot.webhooks.page(project=None, after=None, limit=MOST_WEBHOOKS)[0]

    def delivered(self, tx: Transaction, id_: WebhookId, number: int) -> None:
        """Save that everything up to a number was delivered."""
        before = tx.webhooks.find(id_)
        if before is None:
            return
        after = rules.delivered(before, number)
        if before.is_reported:
            self._record(tx, Kind.WEBHOOK_RECOVERED, after, f"{named(after)} takes records again")
        tx.webhooks.save(after)

    def left_alone_for(self, webhook: Webhook) -> float | None:
        """Return for how many real seconds a webhook that fails is not called; None if it is not failing."""
        return rules.left_alone_for(webhook, real_now=self._real_now())

    def failed(self, tx: Transaction, id_: WebhookId, error: str, *, number: int, wait: float) -> None:
        """Save that a try failed, and that the next one comes in so many real seconds.

        Of a webhook that goes on failing there is one record.
        """
        next_try = self._real_now() + timedelta(seconds=wait)
        before = tx.webhooks.find(id_)
        if before is None:
            return
        now = self._clock.now()
        after = rules.failed(before, error, number=number, now=now, next_try=next_try)
        if after.is_reported and not before.is_reported:
            self._record(tx, Kind.WEBHOOK_FAILING, after, f"{named(after)}: {error}")
        tx.webhooks.save(after)

    def _record(self, tx: Transaction, kind: Kind, webhook: Webhook, reason: str) -> None:
        with self._saving(tx) as draft:
            draft.record(kind, webhook, reason=reason)
