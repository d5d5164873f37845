"""Applying a declared fleet: it is checked as a whole, then saved in parts.

One transaction for a large fleet would block all other callers. Each part is decided on the current fleet, so
other changes may come in between. After a crash, applying the same fleet again does the rest.

A part that has begun is always completed, even if its caller has received a timeout. Until
then no other fleet is applied. After an uncertain commit of a part, its outcome is resolved before another
fleet is checked.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from forewarn.control.paging import all_pages
from forewarn.control.use_case import Context, UseCase
from forewarn.control.webhook_use_cases import MOST_WEBHOOKS, named
from forewarn.core import access
from forewarn.core.access import Token
from forewarn.core.basic_types import DEFAULT_PROJECT, Kind, MachineId
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid, Unavailable, Uncertain
from forewarn.core.filters import MachineFilter
from forewarn.core.fleet import applying
from forewarn.core.fleet.fleet_changes import FleetChange
from forewarn.core.model.slice import Slice
from forewarn.core.text_formats import counted
from forewarn.core.webhook_rules import Webhook
from forewarn.signals import Signal
from forewarn.store.batch import Transact, Transaction
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.snapshots import Snapshot

PROJECT_REMOVED = "its project is removed"
ANOTHER = "another fleet is being applied: try again later"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectLeftovers:
    """Tokens and webhooks of removed projects."""

    tokens: Sequence[Token]
    webhooks: Sequence[Webhook]

    def lines(self) -> Iterator[str]:
        """Yield a line for each, in the format of fleet changes."""
        yield from (f"- token {access.describe(token)}" for token in self.tokens)
        yield from (f"- {named(webhook)}" for webhook in self.webhooks)


def find_leftovers(snapshot: Snapshot, draft: Draft) -> ProjectLeftovers:
    """Find the tokens and webhooks of the projects that a draft removes. The default project always stays."""
    gone = draft.base.projects.keys() - draft.projects.keys() - {DEFAULT_PROJECT}
    if not gone:
        return ProjectLeftovers(tokens=(), webhooks=())
    webhooks, _ = snapshot.webhooks.page(project=None, after=None, limit=MOST_WEBHOOKS)
    return ProjectLeftovers(
        tokens=[token for token in snapshot.tokens.in_force() if token.project in gone],
        webhooks=[webhook for webhook in webhooks if webhook.owner in gone],
    )


def remove_leftovers(tx: Transaction, draft: Draft, leftovers: ProjectLeftovers, *, by: str) -> None:
    """Revoke the tokens and remove the webhooks."""
    for token in leftovers.tokens:
        tx.tokens.save(access.revoke(token.name, [token], now=draft.now))
        draft.record(Kind.TOKEN_REVOKED, None, by=by, reason=f"{access.describe(token)}: {PROJECT_REMOVED}")
    for webhook in leftovers.webhooks:
        tx.webhooks.remove(webhook.id)
        draft.record(Kind.WEBHOOK_REMOVED, webhook, by=by, reason=f"{named(webhook)}: {PROJECT_REMOVED}")


# Items per part: saving them takes a fraction of a second.
AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFleet:
    """A declaration that could be applied when it was checked."""

    changes: tuple[str, ...]  # one line each
    parts: Sequence[FleetChange]
    origin: str = ""  # its source, for the record; empty: a declaration


class FleetApplyLock:
    """Ensures that one fleet is applied at a time, and none while a part of another is being saved.

    Thread-safe.
    """

    def __init__(self) -> None:
        # Whether the commit of the last part is uncertain. Owner: the worker; the operator loop reads it.
        self.in_doubt = False
        self._applying = threading.Lock()
        self._saving = threading.Lock()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Exclude other fleets during the block; Conflict if one is being applied."""
        if not self._applying.acquire(blocking=False):
            raise Conflict(ANOTHER)
        try:
            if self._saving.locked():
                raise Conflict(ANOTHER)
            yield
        finally:
            self._applying.release()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Save a part during the block."""
        with self._saving:
            try:
                yield
            except Uncertain:
                self.in_doubt = True
                raise


class FleetApplication(UseCase):
    """Saves the parts of a declaration in one transaction each, and records the end."""

    def __init__(
        self,
        context: Context,
        checked: CheckedFleet,
        *,
        digest: str | None,
        by: str,
        webhooks_changed: Signal,
        apply_lock: FleetApplyLock,
    ) -> None:
        super().__init__(context)
        self.changes = checked.changes
        self._origin = checked.origin
        self._apply_lock = apply_lock
        self._given_up = False  # owner: the operator loop
        # A file without changes is saved as applied, with an empty part.
        self._parts = checked.parts or (() if digest is None else (FleetChange(),))
        self._saved = 0  # owner: the worker
        self._digest = digest
        self._by = by
        self._webhooks_changed = webhooks_changed

    @property
    def over(self) -> bool:
        """Whether all parts are saved."""
        return self._saved == len(self._parts)

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Wait for the parts within the block. Parts that have not begun at its end are dropped."""
        try:
            yield
        finally:
            self._given_up = True

    def apply_next(self, transact: Transact) -> None:
        """Commit the next part. Conflict if that has become impossible; the message says how far it got."""
        with self._apply_lock.saving():
            if self._given_up:
                raise Unavailable("the caller has stopped waiting: apply the fleet again to continue")
            try:
                transact(self.save_next)
            except (Conflict, Invalid) as error:
                raise self._refusal(error) from error
            self._saved += 1

    def save_next(self, tx: Transaction) -> None:
        """Save the next part in a transaction."""
        part, last = self._parts[self._saved], self._saved == len(self._parts) - 1
        with self._saving(tx, _around(tx, part)) as draft:
            applying.apply(draft, part, by=self._by)
            leftovers = find_leftovers(tx, draft)
            remove_leftovers(tx, draft, leftovers, by=self._by)
            if last and self.changes:
                reason = f"{counted(len(self.changes), 'change')} {self._origin}".strip()
                draft.record(Kind.FLEET_APPLIED, None, by=self._by, reason=reason)
        # Between the first part and the last, no file counts as applied, not even the previous one.
        if self._digest is not None:
            tx.fleet_file.set_applied(self._digest if last else None)
        if leftovers.webhooks:
            tx.after_commit(self._webhooks_changed.send)

    def _refusal(self, error: Conflict | Invalid) -> Conflict | Invalid:
        if not self._saved:
            return error
        return Conflict(
            f"{error}. The fleet is applied up to there ({self._saved} of {len(self._parts)} parts): "
            "correct this, and apply it again to continue"
        )


def _around(tx: Transaction, part: FleetChange) -> Slice:
    """Load everything that a part names, and the members of everything that it removes."""
    known = (each.known for each in part.machines if each.known is not None)
    new = [each.spec for each in part.machines if each.known is None]
    groups = (each.spec.group for each in part.machines if each.spec.group is not None)
    names = frozenset(each.name for each in new)
    places = frozenset(host.name for host in part.hosts)
    around = tx.rules.around(
        machines=[
            *part.removed_machines,
            *(each.before.id for each in part.seen),
            *known,
            # Another caller may have added machines of these names.
            *(_matching(tx.fleet, MachineFilter(names=names)) if names else ()),
            # Machines may be moving to these hosts.
            *(_matching(tx.fleet, MachineFilter(places=places)) if places else ()),
            *(each.vm_id for each in new if each.vm_id is not None),
            *_members(tx, part),
        ],
        hosts=[
            *(each.name for each in part.hosts),
            *(each.host for each in new if each.host),
            *(each.host for each in part.seen if each.host),
            *part.removed_hosts,
        ],
        groups=[*(each.name for each in part.groups), *groups, *part.removed_groups],
    )
    return replace(around, projects={project.name: project for project in tx.fleet.projects()})


def _members(tx: Transaction, part: FleetChange) -> Iterator[MachineId]:
    """Find the members of the groups and projects that a part removes: some may stay in them."""
    enough = len(part.removed_machines) + len(part.machines) + 1  # to find one that stays
    for project in part.removed_projects:
        found, _ = tx.narrowed(project).fleet.machines(after=None, limit=enough)
        yield from (machine.id for machine in found)
    for group in part.removed_groups:
        found, _ = tx.fleet.machines(MachineFilter(group=group), after=None, limit=enough)
        yield from (machine.id for machine in found)


def _matching(fleet: FleetQueries, wanted: MachineFilter) -> Iterator[MachineId]:
    return (machine.id for machine in all_pages(partial(fleet.machines, wanted), limit=AT_ONCE))
