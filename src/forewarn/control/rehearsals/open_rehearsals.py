"""Open rehearsals: in memory, and in the store for other servers and later starts.

After a start, a saved rehearsal continues without its faults until its client renews it, because the client
may be gone. A rehearsal that is not renewed ends automatically, and its orders are cancelled, so that it does
not mislead guests for long.

A change that a caller asks for is committed before guests see it. A rehearsal that ends automatically ends
for guests immediately, and is saved as soon as possible.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import takewhile
from typing import Protocol

from forewarn.control.paging import all_pages
from forewarn.control.use_case import Context, UseCase
from forewarn.core.basic_types import FOREWARN, Kind, MachineId, OrderId, OrderState, ProjectName
from forewarn.core.errors import Conflict, Uncertain
from forewarn.core.filters import OrderFilter
from forewarn.core.model.order import Order
from forewarn.core.orders import interventions
from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.core.rehearsal_rules import Fault, SavedRehearsal
from forewarn.store.batch import Transact, Transaction


class RehearsalEndpoint(Protocol):
    """The part of the guest endpoint that rehearsals use. A project has at most one rehearsal."""

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Begin a rehearsal with machines and their names; each gets an account of what its guest does."""
        ...

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Replace the faults that guests meet."""
        ...

    def accounts(self, project: ProjectName) -> Sequence[GuestAccount]:
        """Return what the guests have done so far."""
        ...

    def close(self, project: ProjectName) -> None:
        """End a rehearsal, so that its machines get normal answers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A scenario that is played in a project."""

    id: str
    scenario: str
    machines: tuple[str, ...]
    faults: tuple[Fault, ...] = ()


def may_have_ordered(rehearsal: SavedRehearsal, order: Order) -> bool:
    """Return whether scenario and author of an order match. A rehearsal of another project may match too."""
    return order.terms.rehearsal == rehearsal.scenario and order.by == rehearsal.by


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRehearsal:
    """A rehearsal that has ended, and who ended it."""

    was: SavedRehearsal
    by: str
    why: str = ""
    by_tenant: bool = False  # the project's own callers, who may not cancel orders of other projects
    on_request: bool = False  # a caller ended it, so its client must not begin it again


# The lease of a rehearsal: real seconds until it must be renewed.
LEASE = 30.0
# How many ended rehearsals are remembered, and for how long.
REMEMBERED = 1000
REMEMBERED_FOR = timedelta(days=1)
# Orders per page, newest first, in the search for those of a rehearsal.
PAGE = 1000
NOT_BEGUN = (OrderState.QUEUED, OrderState.ANNOUNCED)


class OpenRehearsals(UseCase):
    """All open rehearsals, by project."""

    def __init__(
        self, context: Context, *, endpoint: RehearsalEndpoint, monotonic: Callable[[], float]
    ) -> None:
        super().__init__(context)
        self._endpoint = endpoint
        self._monotonic = monotonic
        # Owner of all that follows: the worker. Reading threads look up single projects in `_open`.
        self._open: dict[ProjectName, SavedRehearsal] = {}
        self._renewed: dict[ProjectName, float] = {}  # monotonic seconds
        # Project, id and author of the end: a client that has not noticed the end must not begin again.
        self._ended: deque[tuple[ProjectName, str, str]] = deque(maxlen=REMEMBERED)
        self._unsaved_ends: deque[EndedRehearsal] = deque()
        # Projects where the outcome of the last commit is unknown.
        self._uncertain: set[ProjectName] = set()
        self._load()
        # Rehearsals from before the start that the endpoint does not know yet.
        self._unopened = list(self._open.values())

    def _load(self) -> None:
        """Load saved rehearsals as if they were just renewed: no client could renew them without a server."""
        with self._store.read() as snapshot:
            kept = snapshot.rehearsals.all()
        self._ended.extend((each.project, each.id, each.ended_by) for each in kept if each.ended_by)
        for each in kept:
            if not each.ended_by:
                self._set(replace(each, faults=()))

    def _set(self, rehearsal: SavedRehearsal) -> None:
        self._open[rehearsal.project] = rehearsal
        self._renewed[rehearsal.project] = self._monotonic()

    def _open_at_endpoint(self, *rehearsals: SavedRehearsal) -> None:
        self._unopened += rehearsals
        while self._unopened:
            each = self._unopened.pop(0)
            self._endpoint.open(each.project, {MachineId(id_): name for id_, name in each.machines.items()})

    def get(self, project: ProjectName) -> SavedRehearsal | None:
        """Return the rehearsal of a project."""
        return self._open.get(project)

    def ended_by(self, project: ProjectName, id_: str) -> str | None:
        """Return who has ended a rehearsal of a project."""
        return next((by for *which, by in self._ended if which == [project, id_]), None)

    def accounts(self, project: ProjectName) -> Sequence[GuestAccount]:
        """Return what the guests of a project have done so far; empty after the end."""
        return self._endpoint.accounts(project)

    @contextmanager
    def saving(self, project: ProjectName) -> Iterator[None]:
        """Commit a change of a rehearsal within the block. An uncertain commit is resolved later."""
        try:
            yield
        except Uncertain:
            self._uncertain.add(project)
            raise

    def resolve_uncertain(self, transact: Transact) -> None:
        """Load the rehearsals whose last commit is uncertain."""
        if not self._uncertain:
            return
        kept = [each for each in transact(_all_kept) if each.project in self._uncertain]
        for each in kept:
            if each.ended_by and self.ended_by(each.project, each.id) is None:
                self._ended.append((each.project, each.id, each.ended_by))
        still = {each.project: each for each in kept if not each.ended_by}
        for project in tuple(self._uncertain):
            self._replace(project, still.get(project))
            self._uncertain.discard(project)

    def _replace(self, project: ProjectName, kept: SavedRehearsal | None) -> None:
        known = self._open.get(project)
        if known is not None and (kept is None or kept.id != known.id):
            self._close(project)
        if kept is not None and project not in self._open:
            self._open_at_endpoint(kept)
            self._set(replace(kept, faults=()))

    def renew(self, saved: SavedRehearsal) -> None:
        """Begin a saved rehearsal, or renew its lease, and set its faults."""
        if saved.project not in self._open:
            self._open_at_endpoint(saved)
        self._open_at_endpoint()
        self._endpoint.meet(saved.project, saved.faults)
        self._set(saved)

    def end(self, transact: Transact, project: ProjectName, *, by: str, by_tenant: bool) -> list[OrderId]:
        """End a rehearsal permanently; return its orders that had not begun and are now cancelled."""
        was = self._open[project]
        ended = EndedRehearsal(was=was, by=by, by_tenant=by_tenant, on_request=True)
        with self.saving(project):
            cancelled = transact(lambda tx: self._save_end(tx, ended))
        self._ended.append((project, was.id, by))
        self._close(project)
        return cancelled

    def review(self, transact: Transact) -> None:
        """End rehearsals whose lease has expired, or whose project is no longer for rehearsals."""
        # Leases first, because they need no store: guests are released even during an outage of the store.
        self._open_at_endpoint()
        for project, each in tuple(self._open.items()):
            if self._monotonic() - self._renewed[project] > LEASE:
                self._expire(project, why=f"{each.by} has not renewed it for {LEASE:g} s")
        self._save_ends(transact)
        self.resolve_uncertain(transact)
        if not self._open:
            return
        with self._store.read() as snapshot:
            marked = {project.name for project in snapshot.fleet.projects() if project.rehearsal}
        for project in self._open.keys() - marked:
            self._expire(project, why="the project is no longer for rehearsals")
        self._save_ends(transact)

    def _expire(self, project: ProjectName, *, why: str) -> None:
        """End a rehearsal for guests; its end is saved later, because the store may be unavailable."""
        self._unsaved_ends.append(EndedRehearsal(was=self._close(project), by=FOREWARN, why=why))

    def _close(self, project: ProjectName) -> SavedRehearsal:
        self._open_at_endpoint()
        self._endpoint.close(project)
        return self._open.pop(project)

    def _save_ends(self, transact: Transact) -> None:
        while self._unsaved_ends:
            transact(partial(self._save_missing_end, ended=self._unsaved_ends[0]))
            self._unsaved_ends.popleft()

    def _save_missing_end(self, tx: Transaction, ended: EndedRehearsal) -> None:
        """Save an end, unless an earlier uncertain commit has saved it."""
        which = ended.was.project, ended.was.id
        if any((each.project, each.id) == which for each in tx.rehearsals.all()):
            self._save_end(tx, ended)

    def _save_end(self, tx: Transaction, ended: EndedRehearsal) -> list[OrderId]:
        """Cancel the orders that have not begun, and record the end; return the cancelled orders."""
        cancelled, was = list(self._cancelled(tx, ended)), ended.was
        with self._saving(tx) as draft:
            reason = f"{was.scenario}: {ended.why}" if ended.why else was.scenario
            project = tx.fleet.project(was.project)
            draft.record(Kind.REHEARSAL_ENDED, project, by=ended.by, reason=reason)
        now = self._real_now()
        if ended.on_request:
            tx.rehearsals.save(replace(was, renewed_at=now, ended_by=ended.by))
        else:
            tx.rehearsals.remove(was.project, was.id)
        tx.rehearsals.remove_ended(before=now - REMEMBERED_FOR)
        return cancelled

    def _cancelled(self, tx: Transaction, ended: EndedRehearsal) -> Iterator[OrderId]:
        """Cancel the rehearsal's orders, because no client watches their effect on guests any more."""
        found = [
            order
            for state in NOT_BEGUN
            for order in takewhile(
                lambda order: order.created_at >= ended.was.begun_at,
                all_pages(partial(tx.work.orders, OrderFilter(state=state)), limit=PAGE),
            )
        ]
        for order in found:
            if not may_have_ordered(ended.was, order):
                continue
            with suppress(Conflict), tx.savepoint() as own:  # Conflict: it has begun since
                if self._cancel(own, order, ended):
                    yield order.id

    def _cancel(self, tx: Transaction, order: Order, ended: EndedRehearsal) -> bool:
        """Cancel an order if it belongs to this rehearsal; return whether it does."""
        with self._saving(tx, tx.rules.around(orders=[order.id])) as draft:
            machines = (draft.machines.get(step.machine) for step in draft.orders[order.id].steps)
            projects = {machine.project for machine in machines if machine is not None}
            # An order on a host may affect machines of several projects that play the same scenario.
            others = projects - {ended.was.project}
            goes_on = any(may_have_ordered(self._open[other], order) for other in others & self._open.keys())
            may_cancel = not others or not (ended.by_tenant or goes_on)
            is_own = ended.was.project in projects and may_cancel
            if is_own:
                interventions.cancel(draft, order.id, by=ended.by)
        return is_own


def _all_kept(tx: Transaction) -> Sequence[SavedRehearsal]:
    """Read the saved rehearsals. The lock waits for an uncertain commit to succeed or fail."""
    tx.lock()
    return tx.rehearsals.all()
