"""What can be asked about webhooks, and what is kept of how they fare."""

import base64
import binascii
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass
from urllib.parse import urlsplit

from forewarn.control.naming import check_project
from forewarn.control.ports.clock import Clock
from forewarn.control.ports.records import RecordFilter
from forewarn.control.ports.store import Snapshot, Store, Transaction
from forewarn.control.scope import ProjectStore
from forewarn.control.signal import Bell
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.core.push import webhooks as rules
from forewarn.core.push.targets import is_plainly_inside
from forewarn.core.push.webhooks import NEVER_PUSHED
from forewarn.core.words import Kind, ProjectName

# Each has a task and a connection of its own.
MOST_WEBHOOKS = 1000
# So that the people of one project cannot use up what there is for all.
MOST_OF_A_PROJECT = 20
LONGEST_URL = 2000
WHO_ALLOWS = "an operator may allow others ([webhooks] project-targets)"
# As Standard Webhooks asks: https://github.com/standard-webhooks/standard-webhooks
SECRET_PREFIX = "whsec_"  # noqa: S105 - what a secret begins with
SECRET_BYTES = range(24, 65)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookView:
    """A webhook, and how many records it is behind."""

    webhook: Webhook
    behind: int


def wanted_by(webhook: Webhook) -> RecordFilter:
    """Say which records a webhook is sent."""
    return RecordFilter(project=webhook.project, kinds=webhook.kinds, without=NEVER_PUSHED)


class Webhooks:
    """The use cases of webhooks; `changes` rings when there is another, or one less."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        new_id: Callable[[], str],
        new_secret: Callable[[], str],
        only_public: bool = True,
        changes: Bell | None = None,
    ) -> None:
        """Take whether the people of projects may add webhooks to public addresses only."""
        self._store: Store = store
        self._project: ProjectName | None = None
        self._only_public = only_public
        self._clock = clock
        self._new_id = new_id
        self._new_secret = new_secret
        self.changes = changes or Bell()

    def within(self, project: ProjectName | None) -> "Webhooks":
        """Give the same for the people of a project, who see and keep their own; None: for operators."""
        if project is None:
            return self
        webhooks = copy(self)
        webhooks._store, webhooks._project = ProjectStore(self._store, project), project
        return webhooks

    def add(
        self, url: str, *, project: ProjectName | None, kinds: Collection[Kind], secret: str | None, by: str
    ) -> Webhook:
        """Push records to an address from now on: a project's, or all that whoever adds it may see."""
        checked, only = self._checked_target(url), rules.pushable(kinds)
        key = self._new_secret() if secret is None else _checked_secret(secret)
        with self._store.write() as tx:
            if project is not None:
                check_project(tx, project, within=self._project)
            self._check_room(tx)
            draft = self._draft(tx)
            number = draft.number + 1
            webhook = Webhook(
                id=WebhookId(self._new_id()),
                number=number,
                url=checked,
                project=project or self._project,
                owner=self._project,
                kinds=only,
                secret=key,
                by=by,
                created_at=draft.now,
                delivered=number,
            )
            draft.record(Kind.WEBHOOK_ADDED, webhook, by=by, reason=named(webhook))
            tx.save(draft.changes())
            tx.save_webhook(webhook)
        self.changes.ring()
        return webhook

    def remove(self, id_: WebhookId, *, by: str) -> Webhook:
        """Push nothing to an address any more; what it has not been sent is dropped."""
        with self._store.write() as tx:
            webhook = _existing(tx, id_)
            draft = self._draft(tx)
            draft.record(Kind.WEBHOOK_REMOVED, webhook, by=by, reason=named(webhook))
            tx.save(draft.changes())
            tx.remove_webhook(webhook.id)
        self.changes.ring()
        return webhook

    def webhook(self, id_: WebhookId) -> WebhookView:
        """Show one webhook."""
        with self._store.read() as snapshot:
            return _view(snapshot, _existing(snapshot, id_))

    def webhooks(
        self, *, project: ProjectName | None = None, after: str | None = None, limit: int = MOST_WEBHOOKS
    ) -> tuple[Sequence[WebhookView], str | None]:
        """List webhooks, oldest first."""
        with self._store.read() as snapshot:
            if project is not None:
                check_project(snapshot, project, within=self._project)
            page, more = snapshot.webhooks(project=project, after=after, limit=limit)
            return [_view(snapshot, webhook) for webhook in page], more

    def every(self) -> Sequence[Webhook]:
        """List all webhooks, for whoever serves them."""
        with self._store.read() as snapshot:
            return snapshot.webhooks(project=None, after=None, limit=MOST_WEBHOOKS)[0]

    # How pushing fares

    def delivered(self, id_: WebhookId, number: int) -> None:
        """Keep that everything up to a number was delivered."""
        with self._store.write() as tx:
            before = tx.webhook(id_)
            if before is None:
                return
            after = rules.delivered(before, number)
            if before.said:
                self._say(tx, Kind.WEBHOOK_RECOVERED, after, f"{named(after)} takes records again")
            tx.save_webhook(after)

    def failed(self, id_: WebhookId, error: str, *, number: int) -> None:
        """Keep that a try was in vain; a webhook that goes on failing is said once in the history."""
        with self._store.write() as tx:
            before = tx.webhook(id_)
            if before is None:
                return
            after = rules.failed(before, error, number=number, now=self._clock.now())
            if after.said and not before.said:
                self._say(tx, Kind.WEBHOOK_FAILING, after, f"{named(after)}: {error}")
            tx.save_webhook(after)

    def _checked_target(self, url: str) -> str:
        checked = _checked_url(url)
        guarded = self._project is not None and self._only_public
        host = urlsplit(checked).hostname or ""
        # A name is looked up, and what it leads to judged, whenever it is called.
        if guarded and is_plainly_inside(host):
            raise Invalid(f"url: expected a public address, got {host}: {WHO_ALLOWS}")
        return checked

    def _check_room(self, tx: Transaction) -> None:
        if self._project is not None and tx.count_webhooks(owner=self._project) >= MOST_OF_A_PROJECT:
            raise Conflict(f"the project has {MOST_OF_A_PROJECT} webhooks already: remove one first")
        if tx.count_webhooks() >= MOST_WEBHOOKS:
            raise Conflict(f"there are {MOST_WEBHOOKS} webhooks already: remove one first")

    def _say(self, tx: Transaction, kind: Kind, webhook: Webhook, reason: str) -> None:
        draft = self._draft(tx)
        draft.record(kind, webhook, reason=reason)
        tx.save(draft.changes())

    def _draft(self, tx: Transaction) -> Draft:
        return Draft(tx.around(), now=self._clock.now(), new_id=self._new_id)


def _existing(snapshot: Snapshot, id_: WebhookId) -> Webhook:
    webhook = snapshot.webhook(id_)
    if webhook is None:
        raise NotFound(f"webhook {id_} does not exist")
    return webhook


def _view(snapshot: Snapshot, webhook: Webhook) -> WebhookView:
    behind = snapshot.count_following(webhook.delivered, wanted_by(webhook))
    return WebhookView(webhook=webhook, behind=behind)


def named(webhook: Webhook) -> str:
    """Name a webhook as anybody may read it: the path of its address may be a secret."""
    return f"webhook {webhook.id} to {urlsplit(webhook.url).hostname}"


def _checked_url(url: str) -> str:
    if not _is_address(url):
        raise Invalid(f"url: expected http://… or https://…, got {url[:100]!r}")
    parts = urlsplit(url)
    if parts.username is not None or parts.fragment:
        raise Invalid("url: expected no user and no fragment: calls are signed, that is how they are known")
    return url


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
        # It is not repeated: it is a secret.
        raise Invalid(
            f"secret: expected {SECRET_PREFIX} and {SECRET_BYTES[0]} to {SECRET_BYTES[-1]} bytes in base64"
        )
    return secret
