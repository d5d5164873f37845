"""Webhooks: use cases to add, list and remove them, and the state of their deliveries."""

import base64
import binascii
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlsplit

from forewarn.control.naming import check_project, existing
from forewarn.control.use_case import Context, ScopedReading, UseCase
from forewarn.core import webhook_rules as rules
from forewarn.core.basic_types import Kind, ProjectName
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.filters import RecordFilter
from forewarn.core.webhook_rules import NEVER_PUSHED, Webhook, WebhookId, is_internal_host
from forewarn.signals import Signal
from forewarn.store.batch import ScopedTransaction, Transaction
from forewarn.store.snapshots import ScopedSnapshot

# Each has its own task and connection.
MOST_WEBHOOKS = 1000
# Lower, so that one project cannot use up the limit of all.
MOST_OF_A_PROJECT = 20
LONGEST_URL = 2000
HOW_TO_ALLOW = "an operator may allow others ([webhooks] project-targets)"
# Required by Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks
SECRET_PREFIX = "whsec_"  # noqa: S105 - a prefix, not a secret
SECRET_BYTES = range(24, 65)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookView:
    """A webhook, its backlog in records, and the real seconds until the next retry."""

    webhook: Webhook
    behind: int
    next_try: float | None = None  # None: it is not failing


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTerms:
    """Settings for all webhooks."""

    only_public: bool = True  # whether the webhooks of projects are limited to public addresses
    new_secret: Callable[[], str]
    changed: Signal  # a webhook was added or removed


def record_filter(webhook: Webhook) -> RecordFilter:
    """Return the filter for the records that a webhook receives."""
    return RecordFilter(project=webhook.project, kinds=webhook.kinds, without=NEVER_PUSHED)


class WebhookViews(ScopedReading):
    """Reads about webhooks. A project sees only its own."""

    def webhook(self, id_: WebhookId) -> WebhookView:
        """Return one webhook."""
        with self._store.read() as snapshot:
            return self._view(snapshot, existing(snapshot.webhooks.find(id_), "webhook", id_))

    def webhooks(
        self, *, project: ProjectName | None = None, after: str | None = None, limit: int = MOST_WEBHOOKS
    ) -> tuple[Sequence[WebhookView], str | None]:
        """List webhooks, oldest first."""
        with self._store.read() as snapshot:
            if project is not None:
                check_project(snapshot.fleet, project, scope=self.scope)
            page, more = snapshot.webhooks.page(project=project, after=after, limit=limit)
            return [self._view(snapshot, webhook) for webhook in page], more

    def _view(self, snapshot: ScopedSnapshot, webhook: Webhook) -> WebhookView:
        behind = snapshot.records.count_following(webhook.delivered, record_filter(webhook))
        next_try = rules.retry_delay(webhook, real_now=self._real_now())
        shown = self._disclosed(snapshot.fleet, [webhook])[0]
        return WebhookView(webhook=shown, behind=behind, next_try=next_try)


class Webhooks(UseCase):
    """Use cases that change webhooks. A project manages only its own."""

    def __init__(self, context: Context, *, terms: WebhookTerms) -> None:
        super().__init__(context)
        self._terms = terms

    def add(
        self,
        tx: ScopedTransaction,
        url: str,
        *,
        project: ProjectName | None,
        kinds: Collection[Kind],
        secret: str | None,
        by: str,
    ) -> Webhook:
        """Push new records to a URL: those of one project, or all that the caller sees."""
        checked, only = self._checked_target(tx, url), rules.checked_kinds(kinds)
        key = self._terms.new_secret() if secret is None else _checked_secret(secret)
        if project is not None:
            check_project(tx.fleet, project, scope=tx.scope)
        _check_room(tx)
        with self._saving(tx) as draft:
            webhook = Webhook(
                id=WebhookId(self._new_id()),
                number=draft.number + 1,
                url=checked,
                project=project or tx.scope.caller,
                owner=tx.scope.caller,
                kinds=only,
                secret=key,
                by=by,
                created_at=draft.now,
                delivered=draft.number + 1,
            )
            draft.record(Kind.WEBHOOK_ADDED, webhook, by=by, reason=named(webhook))
        number = draft.given(webhook.number)
        webhook = replace(webhook, number=number, delivered=number)
        tx.webhooks.save(webhook)
        tx.after_commit(self._terms.changed.send)
        return webhook

    def remove(self, tx: ScopedTransaction, id_: WebhookId, *, by: str) -> Webhook:
        """Remove a webhook. Undelivered records are dropped."""
        webhook = existing(tx.webhooks.find(id_), "webhook", id_)
        with self._saving(tx) as draft:
            draft.record(Kind.WEBHOOK_REMOVED, webhook, by=by, reason=named(webhook))
        tx.webhooks.remove(webhook.id)
        tx.after_commit(self._terms.changed.send)
        return webhook

    def _checked_target(self, tx: ScopedTransaction, url: str) -> str:
        if not _is_address(url):
            raise Invalid(f"url: expected http://… or https://…, got {url[:100]!r}")
        parts = urlsplit(url)
        if parts.username is not None or parts.fragment:
            raise Invalid("url: expected no user and no fragment: verify the signature of a delivery instead")
        guarded, host = tx.scope.caller is not None and self._terms.only_public, parts.hostname or ""
        # A host name is resolved, and its address checked, on each delivery.
        if guarded and is_internal_host(host):
            raise Invalid(f"url: expected a public address, got {host}: {HOW_TO_ALLOW}")
        return url


def _check_room(tx: ScopedTransaction) -> None:
    owner = tx.scope.caller
    if owner is not None and tx.webhooks.count(owner=owner) >= MOST_OF_A_PROJECT:
        raise Conflict(f"the project has {MOST_OF_A_PROJECT} webhooks already: remove one first")
    if tx.webhooks.count() >= MOST_WEBHOOKS:
        raise Conflict(f"there are {MOST_WEBHOOKS} webhooks already: remove one first")


def named(webhook: Webhook) -> str:
    """Describe a webhook without the path of its URL, which may be a secret."""
    return f"webhook {webhook.id} to {urlsplit(webhook.url).hostname}"


def _is_address(url: str) -> bool:
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _checked_secret(secret: str) -> str:
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(SECRET_PREFIX) or len(key) not in SECRET_BYTES:
        # The message must not repeat the secret.
        raise Invalid(
            f"secret: expected {SECRET_PREFIX} and {SECRET_BYTES[0]} to {SECRET_BYTES[-1]} bytes in base64"
        )
    return secret


class DeliveryState(UseCase):
    """Use cases of the pusher, which serves all webhooks."""

    def every(self) -> Sequence[Webhook]:
        """List all webhooks."""
        with self._store.read() as snapshot:
            return snapshot.webhooks.page(project=None, after=None, limit=MOST_WEBHOOKS)[0]

    def delivered(self, tx: Transaction, id_: WebhookId, number: int) -> None:
        """Save that a webhook has received all records up to a number."""
        before = tx.webhooks.find(id_)
        if before is None:
            return
        after = rules.delivered(before, number)
        if before.is_reported:
            self._record(tx, Kind.WEBHOOK_RECOVERED, after, f"{named(after)} takes records again")
        tx.webhooks.save(after)

    def retry_delay(self, webhook: Webhook) -> float | None:
        """Return the real seconds until a failing webhook is retried; None if it is not failing."""
        return rules.retry_delay(webhook, real_now=self._real_now())

    def failed(self, tx: Transaction, id_: WebhookId, error: str, *, number: int, wait: float) -> None:
        """Save that a delivery failed, and retry it after some real seconds.

        A webhook that keeps failing gets one record.
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
