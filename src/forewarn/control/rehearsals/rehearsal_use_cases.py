"""Beginning, showing and ending rehearsals on a running server."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from forewarn.control.disclosing import disclosure_to
from forewarn.control.naming import check_project, some
from forewarn.control.rehearsals.open_rehearsals import (
    OpenRehearsal,
    OpenRehearsals,
    Rehearsal,
    declared_project,
)
from forewarn.control.use_case import Context, ScopedReading, UseCase
from forewarn.core.basic_types import Kind, MachineId, OrderId, ProjectName
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.filters import MachineFilter
from forewarn.core.model.project import Project
from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.core.rehearsal_rules import Fault, how_to_mark
from forewarn.core.scope import Scope
from forewarn.store.batch import ScopedTransaction, Transact
from forewarn.store.queries.fleet import FleetQueries


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalView:
    """A rehearsal, who began it when, and what the guests have done so far."""

    rehearsal: Rehearsal
    by: str
    begun_at: datetime
    now: datetime
    accounts: Sequence[GuestAccount]
    cancelled: Sequence[OrderId] = ()  # what had been ordered and not begun, once it is ended


class GoingOn(Protocol):
    """The rehearsals that are going on, as any thread may ask."""

    def get(self, project: ProjectName) -> OpenRehearsal | None:
        """Return the rehearsal in a project."""
        ...

    def accounts(self, project: ProjectName) -> Sequence[GuestAccount]:
        """Return what the guests of a project have done so far; nothing if it has just ended."""
        ...


class RehearsalViews(ScopedReading):
    """What can be asked about rehearsals."""

    def __init__(self, context: Context, scope: Scope, *, going_on: GoingOn) -> None:
        super().__init__(context, scope)
        self._going_on = going_on

    def show(self, project: ProjectName) -> RehearsalView:
        """Show the rehearsal in a project; NotFound if there is none."""
        with self._store.read() as snapshot:
            check_project(snapshot.fleet, project, scope=self.scope)
        known = self._going_on.get(project)
        if known is None:
            raise NotFound(f"nothing is rehearsed in project {project} now")
        return RehearsalView(
            rehearsal=known.rehearsal,
            by=self._who(known.by),
            begun_at=known.begun_at,
            now=self._clock.now(),
            accounts=self._going_on.accounts(project),
        )

    def _who(self, name: str) -> str:
        if self.scope.caller is None:
            return name
        with self._store.read() as snapshot:
            return disclosure_to(snapshot.fleet, self.scope.caller, [name]).person(name)


class Rehearsals(UseCase):
    """The use cases of rehearsals: guests meet a rehearsal once it is committed, and leave it likewise."""

    def __init__(self, context: Context, *, open_ones: OpenRehearsals) -> None:
        super().__init__(context)
        self._context = context
        self._open = open_ones

    def play(
        self, transact: Transact, scope: Scope, project: ProjectName, wanted: Rehearsal, *, by: str
    ) -> RehearsalView:
        """Begin a rehearsal, or go on with it: it ends by itself unless it is asked for again."""
        _check(wanted)
        self._open.look_up(transact)
        known = self._open.get(project)
        with self._open.keeping(project):
            asked_for = transact(lambda tx: self._save(tx.scoped(scope), project, wanted, by=by))
        if known is None:
            self._open.begin(project, asked_for)
        self._open.renew(project, wanted)
        return self._shown(scope, project)

    def _save(
        self, tx: ScopedTransaction, project: ProjectName, wanted: Rehearsal, *, by: str
    ) -> OpenRehearsal:
        check_project(tx.fleet, project, scope=tx.scope)
        declared = declared_project(tx.fleet, project) or Project(name=project)
        known = self._checked(declared, wanted)
        with self._saving(tx) as draft:
            opened = known
            if opened is None:
                machines = _named(tx.fleet, project, wanted.machines)
                opened = OpenRehearsal(rehearsal=wanted, by=by, begun_at=draft.now, machines=machines)
                draft.record(Kind.REHEARSAL_BEGUN, declared, by=by, reason=wanted.scenario)
            if wanted.faults != (() if known is None else known.rehearsal.faults):
                reason = f"{wanted.scenario}: {_in_words(wanted.faults)}"
                draft.record(Kind.REHEARSAL_FAULTS, declared, by=by, reason=reason)
        asked_for = replace(opened, rehearsal=wanted)
        tx.rehearsals.save(asked_for.kept(project, renewed_at=self._real_now()))
        return asked_for

    def _shown(self, scope: Scope, project: ProjectName) -> RehearsalView:
        return RehearsalViews(self._context, scope, going_on=self._open).show(project)

    def end(
        self, transact: Transact, scope: Scope, project: ProjectName, *, only: str | None = None, by: str
    ) -> RehearsalView:
        """End a rehearsal for good, any or only the one with this id, and show it for the last time."""
        self._open.look_up(transact)
        ended = self._shown(scope, project)
        if only not in (None, ended.rehearsal.id):
            raise NotFound(f"another rehearsal is played in project {project} now")
        by_tenant = scope.caller is not None
        return replace(ended, cancelled=self._open.end(transact, project, by=by, by_tenant=by_tenant))

    def _checked(self, declared: Project, wanted: Rehearsal) -> OpenRehearsal | None:
        """Return what goes on already, if this may go on with it; refuse what may not be rehearsed."""
        project = declared.name
        if not declared.rehearsal:
            raise Conflict(f"project {project} is not for rehearsals: {how_to_mark(project)}")
        ender = self._open.ended_by(project, wanted.id)
        if ender is not None:
            raise Conflict(f"{ender} has ended the rehearsal of {wanted.scenario} in project {project}")
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


def _named(fleet: FleetQueries, project: ProjectName, names: Sequence[str]) -> dict[MachineId, str]:
    """Find the machines that play, all with one statement; NotFound names the first that does not exist."""
    wanted = MachineFilter(project=project, names=frozenset(names))
    known, _ = fleet.machines(wanted, after=None, limit=len(names))
    ids = {machine.name.casefold(): machine.id for machine in known}
    for name in names:
        if name.casefold() not in ids:
            raise NotFound(f'machine "{name}" does not exist')
    return {ids[name.casefold()]: name for name in names}


def _check(wanted: Rehearsal) -> None:
    numbers = [fault.number for fault in wanted.faults]
    if len(set(numbers)) < len(numbers):
        raise Invalid("faults: expected a number for each that no other has")
    for index, fault in enumerate(wanted.faults):
        outsiders = set(fault.machines) - set(wanted.machines)
        if outsiders:
            raise Invalid(f"faults[{index}].machines: {min(outsiders)} is not among the machines that play")


def _in_words(faults: Sequence[Fault]) -> str:
    words = [
        f"{each.kind} for {some(each.machines)}" if each.machines else each.kind.value for each in faults
    ]
    return some(words) or "no faults any more"
