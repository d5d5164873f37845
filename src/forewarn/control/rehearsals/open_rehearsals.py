"""The rehearsals that are going on: in memory, and kept in the store, where other servers find them.

After a start those that went on go on, but no answer is spoiled until the client that rehearses asks for it
again: it may be long gone. A rehearsal that is not asked for again ends by itself, so that no guest is misled
for long, and its orders are called off.

What people ask for is saved first, in a transaction of its own, and only then guests meet it. What ends by
itself ends for guests at once, and is saved when that can be.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from forewarn.control.use_case import Context, UseCase
from forewarn.core.basic_types import FOREWARN, Kind, MachineId, OrderId, OrderState, ProjectName
from forewarn.core.errors import Conflict, Uncertain
from forewarn.core.filters import OrderFilter
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.orders import interventions
from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.core.rehearsal_rules import Fault, KeptRehearsal
from forewarn.store.batch import Transact, Transaction
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.queries.work import WorkQueries


class RehearsalEndpoint(Protocol):
    """The guest endpoint, as far as it takes part in rehearsals: one in a project at a time."""

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Begin a rehearsal with machines, each with an account under its name."""
        ...

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        ...

    def accounts(self, project: ProjectName) -> Sequence[GuestAccount]:
        """Return what guests have done so far."""
        ...

    def close(self, project: ProjectName) -> None:
        """End a rehearsal: its machines are answered as all others are."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A scenario that is rehearsed in a project."""

    id: str
    scenario: str
    machines: tuple[str, ...]
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRehearsal:
    """A rehearsal that is going on, and who began it."""

    rehearsal: Rehearsal
    by: str
    begun_at: datetime
    machines: Mapping[MachineId, str]  # by id, their names
    renewed: float = 0.0  # when it was last asked for, in real seconds

    def kept(self, project: ProjectName, *, renewed_at: datetime, ended_by: str = "") -> KeptRehearsal:
        """Return it as it is saved."""
        return KeptRehearsal(
            project=project,
            id=self.rehearsal.id,
            scenario=self.rehearsal.scenario,
            machines={str(machine): name for machine, name in self.machines.items()},
            faults=self.rehearsal.faults,
            by=self.by,
            begun_at=self.begun_at,
            renewed_at=renewed_at,
            ended_by=ended_by,
        )

    def has_ordered(self, order: Order) -> bool:
        """Return whether an order has its scenario and its author; another project's may have the same."""
        return order.terms.rehearsal == self.rehearsal.scenario and order.by == self.by


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRehearsal:
    """A rehearsal that is over, and who or what ended it."""

    project: ProjectName
    was: OpenRehearsal
    by: str
    why: str = ""
    by_tenant: bool = False  # whether the project's own people did, who have no say about others' machines
    for_good: bool = False  # whether people ended it: it is not begun again

    @property
    def which(self) -> tuple[ProjectName, str]:
        """What names it."""
        return self.project, self.was.rehearsal.id

    @property
    def reason(self) -> str:
        """What its record says."""
        scenario = self.was.rehearsal.scenario
        return f"{scenario}: {self.why}" if self.why else scenario

    def may_have_ordered(self, order: Order) -> bool:
        """Return whether an order is of its scenario, its author and its time."""
        return self.was.has_ordered(order) and order.created_at >= self.was.begun_at


def going_on(kept: KeptRehearsal, *, renewed: float) -> OpenRehearsal:
    """Return a rehearsal that was kept, without its faults: these are met once they are asked for again."""
    machines = {MachineId(id_): name for id_, name in kept.machines.items()}
    rehearsal = Rehearsal(id=kept.id, scenario=kept.scenario, machines=tuple(machines.values()))
    return OpenRehearsal(
        rehearsal=rehearsal, by=kept.by, begun_at=kept.begun_at, machines=machines, renewed=renewed
    )


# Until a rehearsal must be asked for again; real seconds.
LEASE = 30.0
# Of those that people have ended.
REMEMBERED = 1000
REMEMBERED_FOR = timedelta(days=1)
# Orders that are looked through at a time for those of a rehearsal, newest first.
PAGE = 1000
NOT_BEGUN = (OrderState.QUEUED, OrderState.ANNOUNCED)


class OpenRehearsals(UseCase):
    """All rehearsals that are going on, by project."""

    def __init__(
        self, context: Context, *, endpoint: RehearsalEndpoint, monotonic: Callable[[], float]
    ) -> None:
        super().__init__(context)
        self._endpoint = endpoint
        self._monotonic = monotonic
        # Owner of all that follows: the worker. Threads that read look up one project in the first.
        self._open: dict[ProjectName, OpenRehearsal] = {}
        # What people have ended, and who: a client that does not know it must not begin it again.
        self._over: deque[tuple[ProjectName, str, str]] = deque(maxlen=REMEMBERED)
        self._unsettled: deque[EndedRehearsal] = deque()
        # Of which it cannot be told whether what was last asked for is kept.
        self._doubtful: set[ProjectName] = set()
        self._take_up()
        # Of those that went on when a server last ran, which the endpoint does not know of yet.
        self._unknown = dict(self._open)

    def _take_up(self) -> None:
        """Go on with what is kept, as if it had just been asked for: nobody could while no server ran."""
        with self._store.read() as snapshot:
            kept = snapshot.rehearsals.all()
        self._over.extend((each.project, each.id, each.ended_by) for each in kept if each.ended_by)
        for each in kept:
            if not each.ended_by:
                self._open[each.project] = going_on(each, renewed=self._monotonic())

    def _let_in(self) -> None:
        """Let the machines in at the endpoint that were in a rehearsal when a server last ran."""
        while self._unknown:
            project, each = self._unknown.popitem()
            self._endpoint.open(project, each.machines)

    def get(self, project: ProjectName) -> OpenRehearsal | None:
        """Return the rehearsal in a project."""
        return self._open.get(project)

    def ended_by(self, project: ProjectName, id_: str) -> str | None:
        """Return who has ended a rehearsal in a project."""
        return next((by for *which, by in self._over if which == [project, id_]), None)

    def accounts(self, project: ProjectName) -> Sequence[GuestAccount]:
        """Return what the guests of a project have done so far."""
        return self._endpoint.accounts(project)

    @contextmanager
    def keeping(self, project: ProjectName) -> Iterator[None]:
        """Save something of a rehearsal within the block; look it up later if that was not answered."""
        try:
            yield
        except Uncertain:
            self._doubtful.add(project)
            raise

    def look_up(self, transact: Transact) -> None:
        """Go by what is kept where it could not be told whether something was."""
        if not self._doubtful:
            return
        kept = [each for each in transact(_all_kept) if each.project in self._doubtful]
        for each in kept:
            if each.ended_by and self.ended_by(each.project, each.id) is None:
                self._over.append((each.project, each.id, each.ended_by))
        still = {each.project: each for each in kept if not each.ended_by}
        for project in tuple(self._doubtful):
            self._follow(project, still.get(project))
            self._doubtful.discard(project)

    def _follow(self, project: ProjectName, kept: KeptRehearsal | None) -> None:
        """Make a project's rehearsal the one that is kept."""
        known = self._open.get(project)
        if known is not None and (kept is None or kept.id != known.rehearsal.id):
            self._leave(project)
        if kept is not None and project not in self._open:
            self.begin(project, going_on(kept, renewed=self._monotonic()))

    def begin(self, project: ProjectName, opened: OpenRehearsal) -> None:
        """Begin a rehearsal that is kept."""
        self._let_in()
        self._endpoint.open(project, opened.machines)
        self._open[project] = opened

    def renew(self, project: ProjectName, wanted: Rehearsal) -> None:
        """Go on with a rehearsal that is kept, with these faults."""
        self._let_in()
        self._endpoint.meet(project, wanted.faults)
        self._open[project] = replace(self._open[project], rehearsal=wanted, renewed=self._monotonic())

    def end(self, transact: Transact, project: ProjectName, *, by: str, by_tenant: bool) -> list[OrderId]:
        """End a rehearsal for good; return the orders of it that had not begun and are cancelled."""
        was = self._open[project]
        ended = EndedRehearsal(project=project, was=was, by=by, by_tenant=by_tenant, for_good=True)
        with self.keeping(project):
            cancelled = transact(lambda tx: self._save_end(tx, ended))
        self._over.append((project, was.rehearsal.id, by))
        self._leave(project)
        return cancelled

    def review(self, transact: Transact) -> None:
        """End what is not asked for again, and what goes on in a project that is no longer for rehearsals."""
        # First what needs no store: while that is away, polls go on being answered.
        self._let_in()
        for project, each in tuple(self._open.items()):
            if self._monotonic() - each.renewed > LEASE:
                self._close(project, why=f"{each.by} has not been heard of for {LEASE:g} s")
        self._settle(transact)
        self.look_up(transact)
        if not self._open:
            return
        with self._store.read() as snapshot:
            marked = {project.name for project in snapshot.fleet.projects() if project.rehearsal}
        for project in self._open.keys() - marked:
            self._close(project, why="the project is not for rehearsals any more")
        self._settle(transact)

    def _close(self, project: ProjectName, *, why: str) -> None:
        """Spoil no more answers; the rest takes the store, which may be away."""
        was = self._leave(project)
        self._unsettled.append(EndedRehearsal(project=project, was=was, by=FOREWARN, why=why))

    def _leave(self, project: ProjectName) -> OpenRehearsal:
        self._let_in()
        self._endpoint.close(project)
        return self._open.pop(project)

    def _settle(self, transact: Transact) -> None:
        """Save the ends of those that have ended by themselves."""
        while self._unsettled:
            ended = self._unsettled[0]
            transact(partial(self._save_missing_end, ended=ended))
            self._unsettled.popleft()

    def _save_missing_end(self, tx: Transaction, ended: EndedRehearsal) -> None:
        """Save an end, unless it is saved already: the database may not have answered the commit."""
        if any((each.project, each.id) == ended.which for each in tx.rehearsals.all()):
            self._save_end(tx, ended)

    def _save_end(self, tx: Transaction, ended: EndedRehearsal) -> list[OrderId]:
        """Cancel what has been ordered and not begun, and record the end; return what was cancelled."""
        cancelled = list(self._cancelled(tx, ended))
        with self._saving(tx) as draft:
            project = declared_project(tx.fleet, ended.project)
            draft.record(Kind.REHEARSAL_ENDED, project, by=ended.by, reason=ended.reason)
        self._keep_end(tx, ended)
        return cancelled

    def _keep_end(self, tx: Transaction, ended: EndedRehearsal) -> None:
        """Forget a rehearsal; one that people have ended is remembered for a while, by who has."""
        now = self._real_now()
        if ended.for_good:
            tx.rehearsals.save(ended.was.kept(ended.project, renewed_at=now, ended_by=ended.by))
        else:
            tx.rehearsals.remove(ended.project, ended.was.rehearsal.id)
        tx.rehearsals.remove_ended(before=now - REMEMBERED_FOR)

    def _cancelled(self, tx: Transaction, ended: EndedRehearsal) -> Iterator[OrderId]:
        """Cancel its orders: no client watches any more what they would do to guests that believe them."""
        found = [order for state in NOT_BEGUN for order in _since(tx.work, ended.was.begun_at, state)]
        for order in filter(ended.may_have_ordered, found):
            with suppress(Conflict), tx.savepoint() as own:  # Conflict: it has begun since
                if self._cancel(own, order, ended):
                    yield order.id

    def _cancel(self, tx: Transaction, order: Order, ended: EndedRehearsal) -> bool:
        """Cancel an order if it is of this rehearsal; return whether it was."""
        with self._saving(tx, tx.rules.around(orders=[order.id])) as draft:
            machines = (draft.machines.get(step.machine) for step in draft.orders[order.id].steps)
            touched = {machine.project for machine in machines if machine is not None}
            mine = self._is_of(order, ended, touched)
            if mine:
                interventions.cancel(draft, order.id, by=ended.by)
        return mine

    def _is_of(self, order: Order, ended: EndedRehearsal, touched: Collection[ProjectName]) -> bool:
        """Return whether an order is of a rehearsal that ended; a host may carry other tenants' machines."""
        others = set(touched) - {ended.project}
        if ended.project not in touched or not others:
            return ended.project in touched
        goes_on = any(self._open[other].has_ordered(order) for other in others & self._open.keys())
        return not ended.by_tenant and not goes_on


def _since(work: WorkQueries, begun_at: datetime, state: OrderState) -> Iterator[Order]:
    """Find the orders in a state that were placed since a moment, whoever has placed how many."""
    after: str | None = None
    while True:
        page, after = work.orders(OrderFilter(state=state), after=after, limit=PAGE)
        yield from page
        if after is None or page[-1].created_at < begun_at:
            return


def declared_project(fleet: FleetQueries, name: ProjectName) -> Project | None:
    """Find a project."""
    return next((project for project in fleet.projects() if project.name == name), None)


def _all_kept(tx: Transaction) -> Sequence[KeptRehearsal]:
    """Read what is kept, once a commit whose answer was lost has landed or failed: it holds the lock."""
    tx.lock()
    return tx.rehearsals.all()
