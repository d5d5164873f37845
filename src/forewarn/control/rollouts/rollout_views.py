"""What can be asked about rollouts that changes nothing: plan them, show them.

A rollout is planned before its turn: others should not wait while many hosts are cut into waves.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forewarn.control import naming
from forewarn.control.interfaces import LastPolls
from forewarn.control.rollouts import prechecked_moves
from forewarn.control.rollouts.rollout_cache import with_notice
from forewarn.control.rollouts.rollout_engine import surveyed, with_alike
from forewarn.control.unsaved_activity import UnsavedPolls
from forewarn.control.use_case import Context, Reading
from forewarn.core.admission.timing import check_deadline
from forewarn.core.basic_types import HostName, HostState, NameKind, RolloutAction, ServiceMode, Work
from forewarn.core.catalogue import MAINTENANCE_WORK
from forewarn.core.errors import Invalid
from forewarn.core.model.changes import UNSAVED
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.rollout import DEFAULT_TERMS, Rollout, RolloutState, RolloutTerms
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts import emptying, forecast, planning, progress
from forewarn.core.rollouts.candidates import Candidates
from forewarn.core.rollouts.emptying import EvacuationCheck, EvacuationInput
from forewarn.core.rollouts.forecast import Expected, on_one_host
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.snapshots import Snapshot
from forewarn.wire.texts import either

# A rollout over more hosts has its orders placed by the engine's next look, some at a time.
MOST_HOSTS_AT_ONCE = 20
# A plan that is older, in service time, may have missed the beginning or the end of a window.
LONGEST_AGE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """A rollout that may be begun; the first wave of a large one has been chosen."""

    rollout: Rollout
    survey: HostSurvey  # what of the fleet it was decided by
    warnings: tuple[str, ...]
    made_at: datetime
    number: int  # the newest change that was known

    @property
    def is_large(self) -> bool:
        """Whether its orders are placed later."""
        return is_large(self.rollout.hosts)

    def is_recent(self, now: datetime) -> bool:
        """Return whether little time has passed since."""
        return timedelta() <= now - self.made_at <= LONGEST_AGE


def is_large(hosts: Collection[HostName]) -> bool:
    """Return whether the orders of a rollout over these hosts are placed some at a time from the first."""
    return len(hosts) > MOST_HOSTS_AT_ONCE


def are_alike(one: HostSurvey, other: HostSurvey) -> bool:
    """Return whether a plan that was made of one survey may be carried out by another.

    How long moves have taken decides nothing.
    """
    return replace(one, pace=other.pace) == other


EVERY_HOST = 10_000_000
# A plan names so many machines that cannot be moved live.
MOST_LOWERED = 10


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
    emptying: tuple[EvacuationCheck, ...] = ()  # of a plan: whether each host can be emptied


class RolloutViews(Reading):
    """The use cases about rollouts that only read."""

    def __init__(self, context: Context, *, polls: UnsavedPolls) -> None:
        super().__init__(context)
        self._polls = polls
        self._plan_prechecks = context.plan_prechecks

    def prepare(self, request: RolloutRequest) -> RolloutPlan | None:
        """Plan a rollout that is to be begun, unless that takes next to no time."""
        if request.hosts is not None and not is_large(request.hosts):
            return None
        now, fresh = self._clock.now(), self._polls.fresh()
        with self._store.read() as snapshot:
            return self.prepared(snapshot, request, fresh, now)

    def prepared(
        self, snapshot: Snapshot, request: RolloutRequest, fresh: LastPolls, now: datetime
    ) -> RolloutPlan:
        """Plan a rollout that is to be begun, as the fleet is in a snapshot."""
        mine, survey = self.planned(snapshot, request, now)
        warnings = self.warnings(snapshot, mine, survey, fresh, now)
        if is_large(mine.hosts):
            mine = forecast.with_first_wave_begun(mine, survey, now=now, policy=self._policy)
        number = snapshot.records.newest()
        return RolloutPlan(rollout=mine, survey=survey, warnings=warnings, made_at=now, number=number)

    def still_holds(self, snapshot: Snapshot, plan: RolloutPlan, now: datetime) -> bool:
        """Return whether a plan is as it would be made now."""
        if not plan.is_recent(now):
            return False
        if plan.number == snapshot.records.newest():
            return True
        mine = plan.rollout
        return are_alike(plan.survey, surveyed(snapshot.rollouts, mine, mine.hosts))

    def plan(self, request: RolloutRequest) -> RolloutView:
        """Show the whole plan, and do nothing."""
        now, fresh = self._clock.now(), self._polls.fresh()
        with self._store.read() as snapshot:
            mine, survey = self.planned(snapshot, request, now)
            warnings = self.warnings(snapshot, mine, survey, fresh, now)
            drivers = mine.driven_by(snapshot.rules.host_drivers(), self._policy.hooks)
            around = snapshot.rollouts.surroundings(mine.hosts) if mine.empties else EvacuationInput()
            asks = mine.empties and bool(self._policy.prechecking)
            asked, more = (
                prechecked_moves.load(snapshot, mine, survey, around, self._policy) if asks else ([], 0)
            )
        obstacles, lowered = prechecked_moves.find_obstacles(
            asked, self._plan_prechecks, now=self._real_now()
        )
        mine = replace(mine, id="", state=RolloutState.PLANNED)
        candidates = Candidates(mine, survey, self._policy)
        reasons = (candidates.why_not(host, now=now) for host in mine.hosts)
        blocking = tuple(dict.fromkeys(why for some in reasons for why in some))
        mine, expected = forecast.forecast(mine, survey, now=now, policy=self._policy)
        waiting = planning.reasons(replace(mine, waiting=blocking), now=now)
        return RolloutView(
            rollout=mine,
            waiting=waiting,
            drivers=drivers,
            expected=expected,
            warnings=(*warnings, *prechecked_moves.warnings_of(more), *lowered[:MOST_LOWERED]),
            emptying=emptying.with_obstacles(emptying.find_obstacles(mine, survey, around), obstacles),
        )

    def rollout(self, id_: str, *, expected: bool = False) -> RolloutView:
        """Show one rollout; on demand with what is expected of its coming waves, which costs a forecast."""
        now = self._clock.now()
        times: tuple[Expected, ...] = ()
        said: tuple[str, ...] = ()
        with self._store.read() as snapshot:
            mine = with_notice(snapshot, naming.existing(snapshot.rollouts.find(id_), "rollout", id_))
            # When a paused one goes on is not known.
            if expected and mine.left and mine.state is RolloutState.RUNNING and not mine.aborting:
                survey = surveyed(snapshot.rollouts, mine, mine.left)
                times = forecast.times(mine, survey, now=now, policy=self._policy)
                said = tuple(forecast.warnings(mine, survey, times, policy=self._policy))
            shown = self.shown(snapshot, mine, now, warnings=said)
            waiting = tuple(dict.fromkeys((*_held(snapshot, mine), *shown.waiting)))
            return replace(shown, waiting=waiting, expected=times)

    def rollouts(
        self, *, after: str | None, limit: int, only_open: bool = False
    ) -> tuple[Sequence[RolloutView], str | None]:
        """List rollouts, newest first: all, or those that are not over."""
        with self._store.read() as snapshot:
            read = snapshot.rollouts.page_of_open if only_open else snapshot.rollouts.page
            found, more = read(after=after, limit=limit)
            now, drivers = self._clock.now(), snapshot.rules.host_drivers()
        return [self._view(mine, now, drivers) for mine in found], more

    def shown(
        self, snapshot: Snapshot, mine: Rollout, now: datetime, *, warnings: tuple[str, ...] = ()
    ) -> RolloutView:
        """Show a rollout that was found."""
        return replace(self._view(mine, now, snapshot.rules.host_drivers()), warnings=warnings)

    def _view(self, mine: Rollout, now: datetime, known: HostDrivers) -> RolloutView:
        drivers = mine.driven_by(known, self._policy.hooks)
        return RolloutView(rollout=mine, waiting=planning.reasons(mine, now=now), drivers=drivers)

    def planned(
        self, snapshot: Snapshot, request: RolloutRequest, now: datetime
    ) -> tuple[Rollout, HostSurvey]:
        """Make a rollout whose waves are all planned; refuse what can never be carried out."""
        _check_action(request)
        if request.hosts_at_once < 1:
            raise Invalid(f"hosts_at_once: expected at least 1, got {request.hosts_at_once}")
        check_deadline(request.terms.deadline, now=now)
        self._drivers_known.check(request.terms.driver)
        self._drivers_known.check(request.terms.host_driver, where="host_work")
        hosts = _wanted_hosts(snapshot.fleet, request)
        if request.terms.canary > len(hosts):
            raise Invalid(
                f"canary: expected at most {len(hosts)}, as many as hosts, got {request.terms.canary}"
            )
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
        survey = surveyed(snapshot.rollouts, mine, hosts)
        for host in hosts:
            if host not in survey.hosts:
                raise naming.unknown(NameKind.HOST, host)
        Candidates(mine, survey, self._policy).check(now=now)
        mine = planning.replan(with_alike(snapshot.rollouts, mine, survey), survey)
        return forecast.arrange_by_windows(mine, survey, now=now, policy=self._policy), survey

    def warnings(
        self, snapshot: Snapshot, mine: Rollout, survey: HostSurvey, fresh: LastPolls, now: datetime
    ) -> tuple[str, ...]:
        """Return what should be known before such a rollout is begun."""
        saved = snapshot.rollouts.machines_never_seen(mine.hosts)
        polled = fresh(list(saved))
        silent = sorted(name for machine, name in saved.items() if machine not in polled)
        never = (f"never polled: {naming.some(silent)}",) if silent else ()
        times = forecast.times(mine, survey, now=now, policy=self._policy)
        unexpected = forecast.warnings(mine, survey, times, policy=self._policy)
        return (*_also_in(mine, snapshot.rollouts.open()), *on_one_host(survey), *unexpected, *never)


def _held(snapshot: Snapshot, mine: Rollout) -> tuple[Waiting, ...]:
    """Return the holds for which hosts wait that have begun."""
    under_way = [order for wave in progress.unfinished(mine) for order in wave.orders]
    holds = snapshot.rules.around().holds.values() if under_way else ()
    return progress.held(snapshot.rollouts.orders_by_id(under_way), holds) if holds else ()


def _also_in(mine: Rollout, others: Iterable[Rollout]) -> Iterator[str]:
    """Warn of hosts that another rollout has still to do, before both wait."""
    for also in shared_with(mine, others):
        yield f"{also}: each waits for the other's orders there"


def shared_with(mine: Rollout, others: Iterable[Rollout]) -> Iterator[str]:
    """Tell of the hosts that other rollouts have still to do."""
    for other in others:
        to_do = {*other.left, *(host for wave in progress.unfinished(other) for host in wave.hosts)}
        shared = [host for host in mine.hosts if host in to_do]
        if shared:
            also = "is also" if len(shared) == 1 else "are also"
            state = f"rollout {other.id}, which is {'being aborted' if other.aborting else other.state}"
            yield f"{naming.some(shared)} {also} in {state}"


def _check_action(request: RolloutRequest) -> None:
    terms, is_service = request.terms, request.work is Work.HOST
    if request.work not in MAINTENANCE_WORK and not is_service:
        raise Invalid(f"action {request.work!r}: expected {either(RolloutAction)}")
    named = {"mode": terms.mode, "returning": terms.returning, "host_work": terms.host_driver}
    for name, value in named.items():
        if value and not is_service:
            raise Invalid(f'{name}: expected only beside action "service"')
    if terms.returning and terms.mode is ServiceMode.IN_PLACE:
        raise Invalid("returning: in place no machine leaves, so that none can come back: leave it out")
    if terms.whole and is_service:
        raise Invalid('whole: a host that is worked on itself always is; expected only "together"')


def _wanted_hosts(fleet: FleetQueries, request: RolloutRequest) -> tuple[HostName, ...]:
    if request.hosts is not None:
        if not request.hosts:
            raise Invalid("hosts: expected at least one, or all")
        return tuple(dict.fromkeys(request.hosts))
    every, _ = fleet.hosts(after=None, limit=EVERY_HOST)
    away = (HostState.FAILED, HostState.LOST)
    sound = tuple(host.name for host in every if host.state not in away)
    if not sound:
        raise Invalid("hosts: there is none in the fleet that has not failed")
    return sound
