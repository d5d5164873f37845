"""What can be asked about rollouts: plan, begin, pause, resume, abort, show."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forewarn.control import naming
from forewarn.control.ports.store import Snapshot, Transaction
from forewarn.control.rollouts.rollout_engine import RolloutEngine, surveyed, with_notice
from forewarn.control.unsaved_polls import UnsavedPolls
from forewarn.control.use_case import Context, FleetUseCase
from forewarn.core.admission.timing import check_deadline
from forewarn.core.catalogue import MAINTENANCE_WORK
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.numbers import UNSAVED
from forewarn.core.model.rollout import DEFAULT_TERMS, Rollout, RolloutState, RolloutTerms
from forewarn.core.model.survey import HostSurvey
from forewarn.core.model.waiting import Waiting
from forewarn.core.rollouts import forecast, plan_warnings, planning, progress, steering
from forewarn.core.rollouts.candidates import Candidates
from forewarn.core.rollouts.forecast import Expected
from forewarn.core.rollouts.plan_warnings import on_one_host
from forewarn.core.spelling import counted
from forewarn.core.words import HostName, HostState, Kind, Work
from forewarn.wire.fields import either

EVERY_HOST = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRequest:
    """What a rollout shall do."""

    hosts: tuple[HostName, ...] | None  # None: all that have not failed
    work: Work
    hosts_at_once: int = 1
    gap: timedelta = timedelta()
    terms: RolloutTerms = DEFAULT_TERMS
    overlap: bool = False  # begin even if another rollout has some of the hosts still to do
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutView:
    """A rollout, why everything of it waits, and what is expected of it."""

    rollout: Rollout
    waiting: tuple[Waiting, ...]
    drivers: Mapping[HostName, str]  # who does the work on each host
    expected: tuple[Expected, ...] = ()
    warnings: tuple[str, ...] = ()


class Rollouts(FleetUseCase):
    """The use cases about rollouts."""

    def __init__(self, context: Context, *, polls: UnsavedPolls) -> None:
        super().__init__(context)
        self._polls = polls
        self._engine = RolloutEngine(context, polls=polls)

    def plan(self, request: RolloutRequest) -> RolloutView:
        """Show the whole plan, and do nothing."""
        now = self._clock.now()
        with self._store.read() as snapshot:
            mine, survey = self._planned(snapshot, request, now)
            warnings = self._warnings(snapshot, mine, survey, now)
            drivers = mine.driven_by(snapshot.host_drivers())
        mine = replace(mine, id="", state=RolloutState.PLANNED)
        candidates = Candidates(mine, survey, self._policy)
        reasons = (candidates.why_not(host, now=now) for host in mine.hosts)
        blocking = tuple(dict.fromkeys(why for some in reasons for why in some))
        mine, expected = forecast.forecast(mine, survey, now=now, policy=self._policy)
        waiting = planning.reasons(replace(mine, waiting=blocking), now=now)
        return RolloutView(
            rollout=mine, waiting=waiting, drivers=drivers, expected=expected, warnings=warnings
        )

    def begin(self, request: RolloutRequest) -> RolloutView:
        """Begin a rollout; its first wave is announced at once if nothing is in the way."""
        now = self._clock.now()
        with self._store.write() as tx:
            mine, survey = self._planned(tx, request, now)
            if not request.overlap:
                _check_apart(mine, tx.open_rollouts())
            warnings = self._warnings(tx, mine, survey, now)
            said = f"{request.work} of {counted(len(mine.hosts), 'host')}, {request.hosts_at_once} at once"
            said = f"{said}: {request.reason}" if request.reason else said
            mine = self._engine.save(tx, mine, now, kind=Kind.ROLLOUT_BEGUN, by=request.by, why=said)
            mine = self._engine.carry_on(tx, mine, now)
            return self._shown(tx, mine, now, warnings=warnings)

    def pause(self, id_: str, *, by: str, reason: str = "", version: int | None = None) -> RolloutView:
        """Withdraw what is announced and not started; `version` is the one that the caller has seen."""
        now = self._clock.now()
        with self._store.write() as tx:
            mine = self._open(tx, id_, version)
            steering.check_running(mine)
            why = f"by {by}: {reason}" if reason else f"by {by}"
            mine = self._engine.pause(tx, mine, by=by, why=why, now=now)
            return self._shown(tx, mine, now)

    def resume(self, id_: str, *, by: str, version: int | None = None) -> RolloutView:
        """Go on; what was withdrawn is announced anew with full notice."""
        now = self._clock.now()
        with self._store.write() as tx:
            mine = self._open(tx, id_, version)
            orders = self._engine.orders_of(tx, mine)
            quiet = self._engine.quiet(tx, mine, orders)
            mine = steering.resumed(mine, orders, quiet, now=now, policy=self._policy)
            self._check_possible(tx, mine, now)
            mine = steering.with_change(mine, "resumed", by=by, now=now)
            self._engine.resume(tx, mine, now)
            self._engine.save(tx, mine, now, kind=Kind.ROLLOUT_RESUMED, by=by)
            mine = self._engine.carry_on(tx, mine, now)
            return self._shown(tx, mine, now)

    def abort(self, id_: str, *, by: str, reason: str = "", version: int | None = None) -> RolloutView:
        """End a rollout: cancel what has not begun, and let the rest be finished first."""
        now = self._clock.now()
        why = f"by {by}: {reason}" if reason else f"by {by}"
        with self._store.write() as tx:
            mine = self._open(tx, id_, version)
            self._engine.cancel_unbegun(tx, mine, by=by, why=f"rollout {mine.id} is aborted: {why}", now=now)
            mine = steering.aborted(mine, self._engine.orders_of(tx, mine), why=why, now=now)
            mine = steering.with_change(mine, "aborted", by=by, now=now)
            self._engine.resume(tx, mine, now)
            self._engine.save(tx, mine, now, kind=Kind.ROLLOUT_ABORTED, by=by, why=why)
            mine = self._engine.carry_on(tx, mine, now)
            return self._shown(tx, mine, now)

    def rollout(self, id_: str, *, expected: bool = False) -> RolloutView:
        """Show one rollout; on demand with what is expected of its coming waves, which costs a forecast."""
        now = self._clock.now()
        times: tuple[Expected, ...] = ()
        said: tuple[str, ...] = ()
        with self._store.read() as snapshot:
            mine = with_notice(snapshot, naming.existing(snapshot.rollout(id_), "rollout", id_))
            # When a paused one goes on is not known.
            if expected and mine.left and mine.state is RolloutState.RUNNING and not mine.aborting:
                survey = surveyed(snapshot, mine.left, mine.terms)
                times = forecast.times(mine, survey, now=now, policy=self._policy)
                said = tuple(plan_warnings.warnings(mine, survey, times, policy=self._policy))
            return replace(self._shown(snapshot, mine, now, warnings=said), expected=times)

    def rollouts(
        self, *, after: str | None, limit: int, only_open: bool = False
    ) -> tuple[Sequence[RolloutView], str | None]:
        """List rollouts, newest first: all, or those that are not over."""
        with self._store.read() as snapshot:
            read = snapshot.page_of_open_rollouts if only_open else snapshot.rollouts
            found, more = read(after=after, limit=limit)
            now, drivers = self._clock.now(), snapshot.host_drivers()
        return [_view(mine, now, drivers) for mine in found], more

    def _shown(
        self, snapshot: Snapshot, mine: Rollout, now: datetime, *, warnings: tuple[str, ...] = ()
    ) -> RolloutView:
        return replace(_view(mine, now, snapshot.host_drivers()), warnings=warnings)

    def _open(self, tx: Transaction, id_: str, version: int | None) -> Rollout:
        mine = naming.existing(tx.rollout(id_), "rollout", id_)
        steering.check_open(mine, version=version)
        return mine

    def _check_possible(self, tx: Transaction, mine: Rollout, now: datetime) -> None:
        """Refuse to go on with what could not be begun now: the fleet may have changed meanwhile."""
        no_way = planning.impossible(mine, surveyed(tx, mine.left, mine.terms), now=now, policy=self._policy)
        if no_way:
            raise Conflict(f"rollout {mine.id} cannot go on: {no_way}")

    def _planned(
        self, snapshot: Snapshot, request: RolloutRequest, now: datetime
    ) -> tuple[Rollout, HostSurvey]:
        """Make a rollout whose waves are all planned; refuse what can never be carried out."""
        if request.work not in MAINTENANCE_WORK:
            raise Invalid(f"action {request.work!r}: expected {either(MAINTENANCE_WORK)}")
        if request.hosts_at_once < 1:
            raise Invalid(f"hosts_at_once: expected at least 1, got {request.hosts_at_once}")
        check_deadline(request.terms.deadline, now=now)
        naming.check_driver(request.terms.driver, self._drivers_known)
        hosts = _wanted_hosts(snapshot, request)
        survey = surveyed(snapshot, hosts, request.terms)
        for host in hosts:
            if host not in survey.hosts:
                raise naming.unknown_host(snapshot, host)
        mine = Rollout(
            id=self._new_id(),
            number=UNSAVED + 1,  # the record that says it has begun
            work=request.work,
            hosts=hosts,
            hosts_at_once=request.hosts_at_once,
            gap=request.gap,
            terms=request.terms,
            by=request.by,
            reason=request.reason,
            created_at=now,
        )
        Candidates(mine, survey, self._policy).check(now=now)
        mine = planning.replan(mine, survey)
        return forecast.arranged(mine, survey, now=now, policy=self._policy), survey

    def _warnings(
        self, snapshot: Snapshot, mine: Rollout, survey: HostSurvey, now: datetime
    ) -> tuple[str, ...]:
        saved = snapshot.silent_machines(mine.hosts)
        fresh = self._polls.fresh(list(saved))
        silent = sorted(name for machine, name in saved.items() if machine not in fresh)
        never = (f"never polled: {naming.some(silent)}",) if silent else ()
        times = forecast.times(mine, survey, now=now, policy=self._policy)
        unexpected = plan_warnings.warnings(mine, survey, times, policy=self._policy)
        return (*_also_in(mine, snapshot.open_rollouts()), *on_one_host(survey), *unexpected, *never)


def _view(mine: Rollout, now: datetime, drivers: HostDrivers) -> RolloutView:
    return RolloutView(rollout=mine, waiting=planning.reasons(mine, now=now), drivers=mine.driven_by(drivers))


def _check_apart(mine: Rollout, others: Iterable[Rollout]) -> None:
    """Refuse hosts that another rollout has still to do: most often it is the same one, sent twice."""
    for also in _shared_with(mine, others):
        raise Conflict(f'{also}: wait for it or abort it, or begin all the same with "overlap" (--overlap)')


def _also_in(mine: Rollout, others: Iterable[Rollout]) -> Iterator[str]:
    """Warn of hosts that another rollout has still to do, before both wait."""
    for also in _shared_with(mine, others):
        yield f"{also}: each waits for the other's orders there"


def _shared_with(mine: Rollout, others: Iterable[Rollout]) -> Iterator[str]:
    for other in others:
        to_do = {*other.left, *(host for wave in progress.unfinished(other) for host in wave.hosts)}
        shared = [host for host in mine.hosts if host in to_do]
        if shared:
            also = "is also" if len(shared) == 1 else "are also"
            state = f"rollout {other.id}, which is {'being aborted' if other.aborting else other.state}"
            yield f"{naming.some(shared)} {also} in {state}"


def _wanted_hosts(snapshot: Snapshot, request: RolloutRequest) -> tuple[HostName, ...]:
    if request.hosts is not None:
        if not request.hosts:
            raise Invalid("hosts: expected at least one, or all")
        return tuple(dict.fromkeys(request.hosts))
    every, _ = snapshot.hosts(after=None, limit=EVERY_HOST)
    sound = tuple(host.name for host in every if host.state is not HostState.FAILED)
    if not sound:
        raise Invalid("hosts: there is none in the fleet that has not failed")
    return sound
