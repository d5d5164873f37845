"""Rehearsals on a running server: whose guests have a part in one, and what they meet.

They are kept in memory alone. What is lost with a restart is only that answers are spoiled, and whoever
rehearses says it again; what nobody says again ends by itself, so that no guest is misled for long.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from forewarn.control.naming import check_project
from forewarn.control.ports.clock import Clock
from forewarn.control.ports.store import Snapshot, Store, Transaction
from forewarn.control.rehearsals.ledger import Account
from forewarn.control.scope import ProjectStore
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.rehearsal.consent import how_to_mark
from forewarn.core.rehearsal.faults import Fault
from forewarn.core.words import Kind, MachineId, MachineName, OrderId, OrderState, ProjectName

# For whoever rehearses to say that it goes on; real seconds.
LEASE = 30.0
# Of those that people have ended.
REMEMBERED = 1000
# As many as a record names, of faults and of the machines of each.
NAMED = 5
# Orders that are looked through for those of a rehearsal, newest first.
LOOKED_AT = 1000
NOT_BEGUN = (OrderState.QUEUED, OrderState.ANNOUNCED)
# Who says so in the records when nobody did.
FOREWARN = "forewarn"


class Playhouse(Protocol):
    """The guest endpoint, as far as it takes part in rehearsals: one in a project at a time."""

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Give machines a part, and each an account under its name."""
        ...

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        ...

    def accounts(self, project: ProjectName) -> Sequence[Account]:
        """Say what guests have done so far."""
        ...

    def close(self, project: ProjectName) -> None:
        """Let everybody be answered as ever."""
        ...


class Cancel(Protocol):
    """Calls an order off."""

    def __call__(self, order: OrderId, /, *, by: str) -> object:
        """Call it off; Conflict if it has begun."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A scenario that is being played in a project."""

    id: str
    scenario: str
    machines: tuple[str, ...]
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalView:
    """A rehearsal, who plays it since when, and what the guests have done so far."""

    rehearsal: Rehearsal
    by: str
    begun_at: datetime
    now: datetime
    accounts: Sequence[Account]
    called_off: Sequence[OrderId] = ()  # what had been ordered and not begun, once it is ended


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    rehearsal: Rehearsal
    by: str
    begun_at: datetime
    renewed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    project: ProjectName
    was: _Open
    by: str
    why: str

    @property
    def reason(self) -> str:
        scenario = self.was.rehearsal.scenario
        return f"{scenario}: {self.why}" if self.why else scenario

    def ordered(self, order: Order) -> bool:
        """Whether an order was part of it."""
        same = order.terms.rehearsal == self.was.rehearsal.scenario and order.by == self.was.by
        return same and order.created_at >= self.was.begun_at


class Rehearsals:
    """The use cases of rehearsals."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        playhouse: Playhouse,
        cancel: Cancel,
        monotonic: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        """Take what calls an order off."""
        self._cancel = cancel
        self._store: Store = store
        self._whole_store = store  # orders of a rehearsal may be on hosts, which are no project's
        self._project: ProjectName | None = None
        self._clock = clock
        self._playhouse = playhouse
        self._monotonic = monotonic
        self._new_id = new_id
        self._open: dict[ProjectName, _Open] = {}
        # What people have ended, and who: it must not be begun again by whoever has not heard of it.
        self._over: deque[tuple[str, str]] = deque(maxlen=REMEMBERED)
        self._unsettled: deque[_Ended] = deque()

    def within(self, project: ProjectName | None) -> "Rehearsals":
        """Give the same for the people of a project; None: for operators."""
        if project is None:
            return self
        mine = copy(self)
        mine._store, mine._project = ProjectStore(self._store, project), project
        return mine

    def play(self, project: ProjectName, wanted: Rehearsal, *, by: str) -> RehearsalView:
        """Begin a rehearsal, or go on with it: it ends by itself if nobody says so again for a while."""
        _check(wanted)
        with self._store.write() as tx:
            declared = self._declared(tx, project)
            known = self._checked(declared, wanted)
            draft = Draft(tx.around(), now=self._clock.now(), new_id=self._new_id)
            machines = {}
            if known is None:
                machines = {self._machine(tx, name, project): name for name in wanted.machines}
                draft.record(Kind.REHEARSAL_BEGUN, declared, by=by, reason=wanted.scenario)
            if wanted.faults != (() if known is None else known.rehearsal.faults):
                reason = f"{wanted.scenario}: {_told(wanted.faults)}"
                draft.record(Kind.REHEARSAL_FAULTS, declared, by=by, reason=reason)
            tx.save(draft.changes())
        if known is None:
            self._playhouse.open(project, machines)
            known = _Open(rehearsal=wanted, by=by, begun_at=draft.now, renewed=0.0)
        self._playhouse.meet(project, wanted.faults)
        self._open[project] = replace(known, rehearsal=wanted, renewed=self._monotonic())
        return self._view(project)

    def show(self, project: ProjectName) -> RehearsalView:
        """Show what is played in a project; NotFound if nothing is."""
        with self._store.read() as snapshot:
            self._declared(snapshot, project)
        return self._view(project)

    def end(self, project: ProjectName, *, only: str | None = None, by: str) -> RehearsalView:
        """End a rehearsal for good, whichever it is or only this one, and show it for the last time."""
        ended = self.show(project)
        if only not in (None, ended.rehearsal.id):
            raise NotFound(f"another rehearsal is played in project {project} now")
        self._over.append((ended.rehearsal.id, by))
        self._end(project, by=by)
        return replace(ended, called_off=self._settle())

    def review(self) -> None:
        """End what nobody goes on with, and what is played where it may not be any more."""
        # First what needs no store: while that is away, polls go on being answered.
        for project, each in tuple(self._open.items()):
            if self._monotonic() - each.renewed > LEASE:
                self._end(project, by=FOREWARN, why=f"{each.by} has not been heard of for {LEASE:g} s")
        self._settle()
        if not self._open:
            return
        with self._store.read() as snapshot:
            marked = {project.name for project in snapshot.projects() if project.rehearsal}
        for project in self._open.keys() - marked:
            self._end(project, by=FOREWARN, why="the project is not for rehearsals any more")
        self._settle()

    def _end(self, project: ProjectName, *, by: str, why: str = "") -> None:
        """Let guests be told the truth; the rest takes the store, which may be away."""
        self._playhouse.close(project)
        self._unsettled.append(_Ended(project=project, was=self._open.pop(project), by=by, why=why))

    def _settle(self) -> list[OrderId]:
        """Call off what has been ordered and not begun, and record the ends."""
        called_off: list[OrderId] = []
        while self._unsettled:
            ended = self._unsettled[0]
            called_off += self._called_off(ended)
            with self._whole_store.write() as tx:
                draft = Draft(tx.around(), now=self._clock.now(), new_id=self._new_id)
                draft.record(Kind.REHEARSAL_ENDED, _find(tx, ended.project), by=ended.by, reason=ended.reason)
                tx.save(draft.changes())
            self._unsettled.popleft()
        return called_off

    def _called_off(self, ended: _Ended) -> Iterator[OrderId]:
        """Nobody watches any more what its orders would do to guests that believe them."""
        with self._whole_store.read() as snapshot:
            pages = [snapshot.orders(state=state, after=None, limit=LOOKED_AT)[0] for state in NOT_BEGUN]
        for order in itertools.chain(*pages):
            if ended.ordered(order):
                with suppress(Conflict):  # it has begun since
                    self._cancel(order.id, by=ended.by)
                    yield order.id

    def _checked(self, declared: Project, wanted: Rehearsal) -> _Open | None:
        """Return what is played already, if this may go on with it; refuse what may not be played."""
        project = declared.name
        if not declared.rehearsal:
            raise Conflict(f"project {project} is not for rehearsals: {how_to_mark(project)}")
        enders = [by for id_, by in self._over if id_ == wanted.id]
        if enders:
            raise Conflict(f"{enders[0]} has ended the rehearsal of {wanted.scenario} in project {project}")
        known = self._open.get(project)
        if known is None:
            return None
        if known.rehearsal.id != wanted.id:
            raise Conflict(
                f"{known.by} plays {known.rehearsal.scenario} in project {project}: "
                f"wait until that is over, or end it with `forewarn project rehearsal {project} --end`"
            )
        if known.rehearsal.machines != wanted.machines:
            raise Conflict("machines: they stay the same for as long as a rehearsal lasts")
        return known

    def _declared(self, snapshot: Snapshot, project: ProjectName) -> Project:
        check_project(snapshot, project, within=self._project)
        return _find(snapshot, project) or Project(name=project)

    def _machine(self, tx: Transaction, name: str, project: ProjectName) -> MachineId:
        return tx.machine(MachineName(name), project=project).id

    def _view(self, project: ProjectName) -> RehearsalView:
        known = self._open.get(project)
        if known is None:
            raise NotFound(f"nothing is rehearsed in project {project} now")
        return RehearsalView(
            rehearsal=known.rehearsal,
            by=known.by,
            begun_at=known.begun_at,
            now=self._clock.now(),
            accounts=self._playhouse.accounts(project),
        )


def _find(snapshot: Snapshot, name: ProjectName) -> Project | None:
    return next((project for project in snapshot.projects() if project.name == name), None)


def _check(wanted: Rehearsal) -> None:
    numbers = [fault.number for fault in wanted.faults]
    if len(set(numbers)) < len(numbers):
        raise Invalid("faults: expected a number for each that no other has")
    for place, fault in enumerate(wanted.faults):
        strangers = set(fault.machines) - set(wanted.machines)
        if strangers:
            raise Invalid(f"faults[{place}].machines: {min(strangers)} is not among the machines that play")


def _told(faults: Sequence[Fault]) -> str:
    return _some([_in_words(fault) for fault in faults]) or "no faults any more"


def _in_words(fault: Fault) -> str:
    return f"{fault.kind} for {_some(fault.machines)}" if fault.machines else fault.kind.value


def _some(words: Sequence[str]) -> str:
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return ", ".join(words[:NAMED]) + more
