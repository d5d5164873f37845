"""A declared fleet on its way into the store: checked whole, then saved a part at a time.

A fleet of many machines would else be one transaction, for which everybody waits. Each part is decided anew
on what is there by then, so that others may change things in between. What a crash has left out is done when
the same fleet is applied again.

A part that was begun ends, though its caller may have been told that the database is too slow: until then no
other fleet is applied. Nor is one looked at before it is known what has become of a part whose saving was not
answered.
"""

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from forewarn.control.use_case import Context, UseCase
from forewarn.control.webhook_use_cases import MOST_WEBHOOKS, named
from forewarn.core import access
from forewarn.core.access import Token
from forewarn.core.basic_types import DEFAULT_PROJECT, Kind, MachineId, ProjectName
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid, Unavailable, Uncertain
from forewarn.core.filters import MachineFilter
from forewarn.core.fleet import applying
from forewarn.core.fleet.fleet_changes import FleetChange
from forewarn.core.model.declaration import MachineSpec
from forewarn.core.model.slice import Slice
from forewarn.core.webhook_rules import Webhook
from forewarn.core.text_formats import counted
from forewarn.signals import Signal
from forewarn.store.batch import Transact, Transaction
from forewarn.store.queries.callers import WebhookQueries
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.snapshots import Snapshot

PROJECT_REMOVED = "its project is removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What projects leave behind."""

    tokens: Sequence[Token]
    webhooks: Sequence[Webhook]

    def lines(self) -> Iterator[str]:
        """Write each in a line, as the changes of a fleet are."""
        yield from (f"- token {access.describe(token)}" for token in self.tokens)
        yield from (f"- {named(webhook)}" for webhook in self.webhooks)


def left_behind(snapshot: Snapshot, draft: Draft) -> Leaving:
    """Find what the projects that a draft removes leave behind; the default one is always there."""
    gone = draft.base.projects.keys() - draft.projects.keys() - {DEFAULT_PROJECT}
    if not gone:
        return Leaving(tokens=(), webhooks=())
    return Leaving(
        tokens=[token for token in snapshot.tokens.in_force() if token.project in gone],
        webhooks=_own_webhooks(snapshot.webhooks, gone),
    )


def let_go(tx: Transaction, draft: Draft, leaving: Leaving, *, by: str) -> None:
    """Revoke the tokens and remove the webhooks."""
    for token in leaving.tokens:
        tx.tokens.save(access.revoke(token.name, [token], now=draft.now))
        draft.record(Kind.TOKEN_REVOKED, None, by=by, reason=f"{access.describe(token)}: {PROJECT_REMOVED}")
    for webhook in leaving.webhooks:
        tx.webhooks.remove(webhook.id)
        draft.record(Kind.WEBHOOK_REMOVED, webhook, by=by, reason=f"{named(webhook)}: {PROJECT_REMOVED}")


def _own_webhooks(webhooks: WebhookQueries, projects: Collection[ProjectName]) -> list[Webhook]:
    every, _ = webhooks.page(project=None, after=None, limit=MOST_WEBHOOKS)
    return [webhook for webhook in every if webhook.owner in projects]


# Things in a part: to save them takes a fraction of a second.
AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFleet:
    """A declaration that could be applied when it was looked at."""

    changes: tuple[str, ...]  # all of them, a line for each
    parts: Sequence[FleetChange]
    origin: str = ""  # where it comes from, as its record says; nothing: somebody has declared it


class FleetTurns:
    """Who applies a fleet: one at a time, and none while a part of another is being saved; for any thread."""

    def __init__(self) -> None:
        # Whether it cannot be told if the last part is saved. Owner: the worker; the operator loop reads it.
        self.in_doubt = False
        self._applying = threading.Lock()
        self._saving = threading.Lock()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Apply no other fleet within the block; Conflict if one is being applied."""
        if not self._applying.acquire(blocking=False):
            raise _taken()
        try:
            if self._saving.locked():
                raise _taken()
            yield
        finally:
            self._applying.release()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Save a part within the block."""
        with self._saving:
            try:
                yield
            except Uncertain:
                self.in_doubt = True
                raise


def _taken() -> Conflict:
    return Conflict("another fleet is being applied: try again when that is done")


class FleetApplication(UseCase):
    """Saves the parts of one declaration, a transaction for each, and at the end that it is applied."""

    def __init__(
        self,
        context: Context,
        checked: CheckedFleet,
        *,
        digest: str | None,
        by: str,
        webhooks_changed: Signal,
        turns: FleetTurns,
    ) -> None:
        super().__init__(context)
        self.changes = checked.changes
        self._origin = checked.origin
        self._turns = turns
        self._given_up = False  # owner: the operator loop, which sets it once
        nothing = () if digest is None else (FleetChange(),)
        self._parts = checked.parts or nothing
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
        """Have parts saved within the block alone: one that is still to be begun then is given up."""
        try:
            yield
        finally:
            self._given_up = True

    def apply_next(self, transact: Transact) -> None:
        """Commit the next part; Conflict if it cannot be any more, which says how far it got."""
        with self._turns.saving():
            if self._given_up:
                raise Unavailable("nobody waits for this fleet any more: apply it again to go on")
            try:
                transact(self.save_next)
            except (Conflict, Invalid) as error:
                raise self._refusal(error) from error
            self._saved += 1

    def save_next(self, tx: Transaction) -> None:
        """Save the next part in a transaction."""
        part, last = self._parts[self._saved], self._saved == len(self._parts) - 1
        members = _members_of_projects(tx, part)
        with self._saving(tx, _around(tx, part, members)) as draft:
            applying.apply(draft, part, by=self._by)
            leaving = left_behind(tx, draft)
            let_go(tx, draft, leaving, by=self._by)
            if last and self.changes:
                said = f"{counted(len(self.changes), 'change')} {self._origin}".strip()
                draft.record(Kind.FLEET_APPLIED, None, by=self._by, reason=said)
        # Between the first part and the last no file is the one that is applied: also who goes back to
        # that of before has it applied.
        if self._digest is not None:
            tx.fleet_file.set_applied(self._digest if last else None)
        if leaving.webhooks:
            tx.after_commit(self._webhooks_changed.send)

    def _refusal(self, error: Conflict | Invalid) -> Conflict | Invalid:
        if not self._saved:
            return error
        return Conflict(
            f"{error}. Until there the fleet is applied ({self._saved} of {len(self._parts)} parts): "
            "see to that, and apply it again to go on"
        )


def _members_of_projects(tx: Transaction, part: FleetChange) -> list[MachineId]:
    """Find who is in the projects that a part removes: it may be more than are removed with them."""
    found: list[MachineId] = []
    for project in part.removed_projects:
        some, _ = tx.narrowed(project).fleet.machines(after=None, limit=_enough(part))
        found += [machine.id for machine in some]
    return found


def _around(tx: Transaction, part: FleetChange, members: Iterable[MachineId]) -> Slice:
    """Load what a part names, and who is in what it removes."""
    known = (each.known for each in part.machines if each.known is not None)
    new = [each.spec for each in part.machines if each.known is None]
    groups = (each.spec.group for each in part.machines if each.spec.group is not None)
    around = tx.rules.around(
        machines=[
            *part.removed_machines,
            *(each.before.id for each in part.seen),
            *known,
            *_named(tx.fleet, new),
            *_bound_for(tx.fleet, part),
            *(each.vm_id for each in new if each.vm_id is not None),
            *_members_of_groups(tx.fleet, part),
            *members,
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


def _named(fleet: FleetQueries, new: Sequence[MachineSpec]) -> list[MachineId]:
    """Find machines of the names that new ones are to have: somebody may have added them meanwhile."""
    names = frozenset(each.name for each in new)
    return _found(fleet, MachineFilter(names=names)) if names else []


def _bound_for(fleet: FleetQueries, part: FleetChange) -> list[MachineId]:
    """Find who is on its way to hosts that are declared."""
    places = frozenset(host.name for host in part.hosts)
    return _found(fleet, MachineFilter(places=places)) if places else []


def _found(fleet: FleetQueries, wanted: MachineFilter) -> list[MachineId]:
    some, after = fleet.machines(wanted, after=None, limit=AT_ONCE)
    found = [machine.id for machine in some]
    while after is not None:
        some, after = fleet.machines(wanted, after=after, limit=AT_ONCE)
        found += [machine.id for machine in some]
    return found


def _members_of_groups(fleet: FleetQueries, part: FleetChange) -> list[MachineId]:
    """Find who is in the groups that a part removes: it may be more than are removed with them."""
    found: list[MachineId] = []
    for group in part.removed_groups:
        some, _ = fleet.machines(MachineFilter(group=group), after=None, limit=_enough(part))
        found += [machine.id for machine in some]
    return found


def _enough(part: FleetChange) -> int:
    """Return how many members to look at, to find one that stays."""
    return len(part.removed_machines) + len(part.machines) + 1
