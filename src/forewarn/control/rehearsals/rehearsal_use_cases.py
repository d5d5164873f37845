"""Use cases that begin, show and end rehearsals on a running server."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from forewarn.control.disclosing import disclosure_to
from forewarn.control.naming import check_project, shortened
from forewarn.control.rehearsals.open_rehearsals import OpenRehearsals, Rehearsal
from forewarn.control.use_case import Context, ScopedReading, UseCase
from forewarn.core.basic_types import Kind, OrderId, ProjectName
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.filters import MachineFilter
from forewarn.core.model.project import Project
from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.core.rehearsal_rules import Fault, SavedRehearsal, how_to_allow_rehearsals
from forewarn.core.scope import Scope
from forewarn.store.batch import ScopedTransaction, Transact
from forewarn.store.queries.fleet import FleetQueries


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalView:
    """A rehearsal, its author, and what the guests have done so far."""

    rehearsal: Rehearsal
    by: str
    begun_at: datetime
    now: datetime
    accounts: Sequence[GuestAccount]
    cancelled: Sequence[OrderId] = ()  # after the end: the orders that had not begun


class RehearsalViews(ScopedReading):
    """Reads about rehearsals."""

    def __init__(self, context: Context, scope: Scope, *, open_ones: OpenRehearsals) -> None:
        super().__init__(context, scope)
        self._open = open_ones

    def show(self, project: ProjectName) -> RehearsalView:
        """Return the rehearsal of a project; NotFound if there is none."""
        with self._store.read() as snapshot:
            check_project(snapshot.fleet, project, scope=self.scope)
            known = self._open.get(project)
            if known is None:
                raise NotFound(f"no rehearsal is open in project {project}")
            by = _disclosed_author(snapshot.fleet, known.by, scope=self.scope)
        accounts = self._open.accounts(project)
        return _view(known, by=by, now=self._clock.now(), accounts=accounts)


def _view(
    known: SavedRehearsal, *, by: str, now: datetime, accounts: Sequence[GuestAccount]
) -> RehearsalView:
    machines = tuple(known.machines.values())
    rehearsal = Rehearsal(id=known.id, scenario=known.scenario, machines=machines, faults=known.faults)
    return RehearsalView(rehearsal=rehearsal, by=by, begun_at=known.begun_at, now=now, accounts=accounts)


def _disclosed_author(fleet: FleetQueries, name: str, *, scope: Scope) -> str:
    return name if scope.caller is None else disclosure_to(fleet, scope.caller, [name]).person(name)


class Rehearsals(UseCase):
    """Use cases that change rehearsals. Guests see a change once it is committed."""

    def __init__(self, context: Context, *, open_ones: OpenRehearsals) -> None:
        super().__init__(context)
        self._context = context
        self._open = open_ones

    def play(
        self, transact: Transact, scope: Scope, project: ProjectName, wanted: Rehearsal, *, by: str
    ) -> RehearsalView:
        """Begin a rehearsal, or renew its lease: it ends automatically unless it is renewed."""
        _check(wanted)
        self._open.resolve_uncertain(transact)
        with self._open.saving(project):
            saved, author = transact(lambda tx: self._save(tx.scoped(scope), project, wanted, by=by))
        # From here on, nothing may fail: the store is not read again.
        self._open.renew(saved)
        accounts = self._open.accounts(project)
        return _view(saved, by=author, now=self._clock.now(), accounts=accounts)

    def _save(
        self, tx: ScopedTransaction, project: ProjectName, wanted: Rehearsal, *, by: str
    ) -> tuple[SavedRehearsal, str]:
        """Save a rehearsal; return it, and its author as the caller may see it."""
        check_project(tx.fleet, project, scope=tx.scope)
        declared = tx.fleet.project(project) or Project(name=project)
        known = self._checked(declared, wanted)
        with self._saving(tx) as draft:
            saved = known
            if saved is None:
                saved = SavedRehearsal(
                    project=project,
                    id=wanted.id,
                    scenario=wanted.scenario,
                    machines=_find_machines(tx.fleet, project, wanted.machines),
                    by=by,
                    begun_at=draft.now,
                    renewed_at=draft.now,
                )
                draft.record(Kind.REHEARSAL_BEGUN, declared, by=by, reason=wanted.scenario)
            if wanted.faults != saved.faults:
                reason = f"{wanted.scenario}: {_describe(wanted.faults)}"
                draft.record(Kind.REHEARSAL_FAULTS, declared, by=by, reason=reason)
        saved = replace(saved, scenario=wanted.scenario, faults=wanted.faults, renewed_at=self._real_now())
        tx.rehearsals.save(saved)
        return saved, _disclosed_author(tx.fleet, saved.by, scope=tx.scope)

    def end(
        self, transact: Transact, scope: Scope, project: ProjectName, *, only: str | None = None, by: str
    ) -> RehearsalView:
        """End a rehearsal permanently, and return its last state. `only`: the id that it must have."""
        self._open.resolve_uncertain(transact)
        ended = RehearsalViews(self._context, scope, open_ones=self._open).show(project)
        if only not in (None, ended.rehearsal.id):
            raise NotFound(f"project {project} has another rehearsal now")
        by_tenant = scope.caller is not None
        return replace(ended, cancelled=self._open.end(transact, project, by=by, by_tenant=by_tenant))

    def _checked(self, declared: Project, wanted: Rehearsal) -> SavedRehearsal | None:
        """Return the open rehearsal to renew, if any; Conflict if this one may not be played."""
        project = declared.name
        if not declared.rehearsal:
            raise Conflict(f"project {project} is not for rehearsals: {how_to_allow_rehearsals(project)}")
        ender = self._open.ended_by(project, wanted.id)
        if ender is not None:
            raise Conflict(f"{ender} has ended the rehearsal of {wanted.scenario} in project {project}")
        known = self._open.get(project)
        if known is None:
            return None
        if known.id != wanted.id:
            raise Conflict(
                f"{known.by} plays {known.scenario} in project {project}: "
                f"wait until that is over, or end it with `forewarn project rehearsal {project} --end`"
            )
        if tuple(known.machines.values()) != wanted.machines:
            raise Conflict("machines: cannot change during a rehearsal")
        return known


def _find_machines(fleet: FleetQueries, project: ProjectName, names: Sequence[str]) -> dict[str, str]:
    """Find machines by name, with one statement. NotFound names the first that does not exist."""
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
        raise Invalid("faults: expected a unique number for each")
    for index, fault in enumerate(wanted.faults):
        outsiders = set(fault.machines) - set(wanted.machines)
        if outsiders:
            raise Invalid(f"faults[{index}].machines: {min(outsiders)} is not among the machines that play")


def _describe(faults: Sequence[Fault]) -> str:
    described = [
        f"{each.kind} for {shortened(each.machines)}" if each.machines else each.kind.value for each in faults
    ]
    return shortened(described) or "no faults"
