"""Use cases that plan and show rollouts.

A large rollout is planned on a reading thread before the worker begins it, because planning takes time.
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
from forewarn.core.rollouts import evacuation, forecast, planning, progress
from forewarn.core.rollouts.candidates import Candidates
from forewarn.core.rollouts.evacuation import EvacuationCheck, EvacuationInput
from forewarn.core.rollouts.forecast import Expected, on_one_host
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.snapshots import Snapshot
from forewarn.wire.texts import either

# For more hosts, the engine places the orders, a few per tick.
MOST_HOSTS_AT_ONCE = 20
# In service time. A window may have begun or ended since an older plan.
LONGEST_AGE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """A rollout that may begin. For a large one, the first wave is chosen."""

    rollout: Rollout
    survey: HostSurvey  # the input of its decisions
    warnings: tuple[str, ...]
    made_at: datetime
    number: int  # of the newest change it knows

    @property
    def is_large(self) -> bool:
        """Whether its orders are placed later."""
        return is_large(self.rollout.hosts)


def is_large(hosts: Collection[HostName]) -> bool:
    """Return whether the orders of a rollout over these hosts are placed in several pieces."""
    return len(hosts) > MOST_HOSTS_AT_ONCE


EVERY_HOST = 10_000_000
# The most machines that a plan names because they cannot move live.
MOST_LOWERED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRequest:
    """The parameters of a rollout."""

    hosts: tuple[HostName, ...] | None  # None: all that have not failed
    work: Work
    hosts_at_once: int = 1
    gap: timedelta = timedelta()
    terms: RolloutTerms = DEFAULT_TERMS
    overlap: bool = False  # begin even if another open rollout shares hosts
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutView:
    """A rollout, the reasons why its parts wait, and its forecast."""

    rollout: Rollout
    waiting: tuple[Waiting, ...]
    drivers: Mapping[HostName, str]  # by host
    expected: tuple[Expected, ...] = ()
    warnings: tuple[str, ...] = ()
    emptying: tuple[EvacuationCheck, ...] = ()  # of a plan: whether each host can be emptied


class RolloutViews(Reading):
    """Use cases that read rollouts."""

    def __init__(self, context: Context, *, polls: UnsavedPolls) -> None:
        super().__init__(context)
        self._polls = polls
        self._plan_prechecks = context.plan_prechecks

    def prepare(self, request: RolloutRequest) -> RolloutPlan | None:
        """Plan a rollout in advance; None if it is small enough to plan in its transaction."""
        if request.hosts is not None and not is_large(request.hosts):
            return None
        now, fresh = self._clock.now(), self._polls.fresh()
        with self._store.read() as snapshot:
            return self.prepared(snapshot, request, fresh, now)

    def prepared(
        self, snapshot: Snapshot, request: RolloutRequest, fresh: LastPolls, now: datetime
    ) -> RolloutPlan:
        """Plan a rollout on the fleet of a snapshot."""
        rollout, survey = self.planned(snapshot, request, now)
        warnings = self.warnings(snapshot, rollout, survey, fresh, now)
        if is_large(rollout.hosts):
            rollout = forecast.with_first_wave_begun(rollout, survey, now=now, policy=self._policy)
        number = snapshot.records.newest()
        return RolloutPlan(rollout=rollout, survey=survey, warnings=warnings, made_at=now, number=number)

    def still_holds(self, snapshot: Snapshot, plan: RolloutPlan, now: datetime) -> bool:
        """Return whether planning again would give the same plan."""
        if not timedelta() <= now - plan.made_at <= LONGEST_AGE:
            return False
        if plan.number == snapshot.records.newest():
            return True
        survey = surveyed(snapshot.rollouts, plan.rollout, plan.rollout.hosts)
        return replace(survey, pace=plan.survey.pace) == plan.survey  # the pace of moves decides nothing

    def plan(self, request: RolloutRequest) -> RolloutView:
        """Return the complete plan of a rollout, without beginning it."""
        now, fresh = self._clock.now(), self._polls.fresh()
        with self._store.read() as snapshot:
            rollout, survey = self.planned(snapshot, request, now)
            warnings = self.warnings(snapshot, rollout, survey, fresh, now)
            drivers = rollout.driven_by(snapshot.rules.host_drivers(), self._policy.hooks)
            around = snapshot.rollouts.surroundings(rollout.hosts) if rollout.empties else EvacuationInput()
            asks = rollout.empties and bool(self._policy.prechecking)
            asked, more = (
                prechecked_moves.load(snapshot, rollout, survey, around, self._policy) if asks else ([], 0)
            )
        obstacles, lowered = prechecked_moves.find_obstacles(
            asked, self._plan_prechecks, now=self._real_now()
        )
        rollout = replace(rollout, id="", state=RolloutState.PLANNED)
        candidates = Candidates(rollout, survey, self._policy)
        reasons = (candidates.why_not(host, now=now) for host in rollout.hosts)
        blocking = tuple(dict.fromkeys(why for some in reasons for why in some))
        rollout, expected = forecast.forecast(rollout, survey, now=now, policy=self._policy)
        waiting = planning.reasons(replace(rollout, waiting=blocking), now=now)
        return RolloutView(
            rollout=rollout,
            waiting=waiting,
            drivers=drivers,
            expected=expected,
            warnings=(*warnings, *prechecked_moves.warnings_of(more), *lowered[:MOST_LOWERED]),
            emptying=evacuation.with_obstacles(evacuation.find_obstacles(rollout, survey, around), obstacles),
        )

    def rollout(self, id_: str, *, expected: bool = False) -> RolloutView:
        """Return one rollout. `expected` adds a forecast of the coming waves, which takes longer."""
        now = self._clock.now()
        times: tuple[Expected, ...] = ()
        warnings: tuple[str, ...] = ()
        with self._store.read() as snapshot:
            rollout = with_notice(snapshot, naming.existing(snapshot.rollouts.find(id_), "rollout", id_))
            # A paused rollout has no forecast, because it is unknown when it continues.
            if expected and rollout.left and rollout.state is RolloutState.RUNNING and not rollout.aborting:
                survey = surveyed(snapshot.rollouts, rollout, rollout.left)
                times = forecast.wave_times(rollout, survey, now=now, policy=self._policy)
                warnings = tuple(forecast.warnings(rollout, survey, times, policy=self._policy))
            shown = self.shown(snapshot, rollout, now, warnings=warnings)
            waiting = tuple(dict.fromkeys((*_held(snapshot, rollout), *shown.waiting)))
            return replace(shown, waiting=waiting, expected=times)

    def rollouts(
        self, *, after: str | None, limit: int, only_open: bool = False
    ) -> tuple[Sequence[RolloutView], str | None]:
        """List rollouts, newest first: all, or only open ones."""
        with self._store.read() as snapshot:
            read = snapshot.rollouts.page_of_open if only_open else snapshot.rollouts.page
            found, more = read(after=after, limit=limit)
            now, drivers = self._clock.now(), snapshot.rules.host_drivers()
        return [self._view(rollout, now, drivers) for rollout in found], more

    def shown(
        self, snapshot: Snapshot, rollout: Rollout, now: datetime, *, warnings: tuple[str, ...] = ()
    ) -> RolloutView:
        """Return the view of a loaded rollout."""
        return replace(self._view(rollout, now, snapshot.rules.host_drivers()), warnings=warnings)

    def _view(self, rollout: Rollout, now: datetime, known: HostDrivers) -> RolloutView:
        drivers = rollout.driven_by(known, self._policy.hooks)
        return RolloutView(rollout=rollout, waiting=planning.reasons(rollout, now=now), drivers=drivers)

    def planned(
        self, snapshot: Snapshot, request: RolloutRequest, now: datetime
    ) -> tuple[Rollout, HostSurvey]:
        """Plan all waves of a rollout. Conflict or Invalid if it can never be carried out."""
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
        rollout = Rollout(
            id=self._new_id(),
            number=UNSAVED + 1,  # of its first record
            work=request.work,
            hosts=hosts,
            hosts_at_once=request.hosts_at_once,
            gap=request.gap,
            terms=request.terms,
            by=request.by,
            reason=request.reason,
            created_at=now,
        )
        survey = surveyed(snapshot.rollouts, rollout, hosts)
        for host in hosts:
            if host not in survey.hosts:
                raise naming.unknown(NameKind.HOST, host)
        Candidates(rollout, survey, self._policy).check(now=now)
        rollout = planning.replan(with_alike(snapshot.rollouts, rollout, survey), survey)
        return forecast.arrange_by_windows(rollout, survey, now=now, policy=self._policy), survey

    def warnings(
        self, snapshot: Snapshot, rollout: Rollout, survey: HostSurvey, fresh: LastPolls, now: datetime
    ) -> tuple[str, ...]:
        """Return what the caller should know before the rollout begins."""
        saved = snapshot.rollouts.machines_never_seen(rollout.hosts)
        polled = fresh(list(saved))
        silent = sorted(name for machine, name in saved.items() if machine not in polled)
        never = (f"never polled: {naming.shortened(silent)}",) if silent else ()
        times = forecast.wave_times(rollout, survey, now=now, policy=self._policy)
        unexpected = forecast.warnings(rollout, survey, times, policy=self._policy)
        shared = shared_with(rollout, snapshot.rollouts.open())
        also = (f"{each}: each waits for the other's orders there" for each in shared)
        return (*also, *on_one_host(survey), *unexpected, *never)


def _held(snapshot: Snapshot, rollout: Rollout) -> tuple[Waiting, ...]:
    """Return the holds that stop hosts which have begun."""
    under_way = [order for wave in progress.unfinished(rollout) for order in wave.orders]
    holds = snapshot.rules.around().holds.values() if under_way else ()
    return progress.held(snapshot.rollouts.orders_by_id(under_way), holds) if holds else ()


def shared_with(rollout: Rollout, others: Iterable[Rollout]) -> Iterator[str]:
    """Yield a message for each other rollout that shares unfinished hosts with this one."""
    for other in others:
        to_do = {*other.left, *(host for wave in progress.unfinished(other) for host in wave.hosts)}
        shared = [host for host in rollout.hosts if host in to_do]
        if shared:
            also = "is also" if len(shared) == 1 else "are also"
            state = f"rollout {other.id}, which is {'being aborted' if other.aborting else other.state}"
            yield f"{naming.shortened(shared)} {also} in {state}"


def _check_action(request: RolloutRequest) -> None:
    terms, is_service = request.terms, request.work is Work.HOST
    if request.work not in MAINTENANCE_WORK and not is_service:
        raise Invalid(f"action {request.work!r}: expected {either(RolloutAction)}")
    named = {"mode": terms.mode, "returning": terms.returning, "host_work": terms.host_driver}
    for name, value in named.items():
        if value and not is_service:
            raise Invalid(f'{name}: expected only beside action "service"')
    if terms.returning and terms.mode is ServiceMode.IN_PLACE:
        raise Invalid("returning: not possible in place, where no machine leaves its host")
    if terms.whole and is_service:
        raise Invalid('whole: always the case for work on the host itself; expected only "together"')


def _wanted_hosts(fleet: FleetQueries, request: RolloutRequest) -> tuple[HostName, ...]:
    if request.hosts is not None:
        if not request.hosts:
            raise Invalid("hosts: expected at least one, or all")
        return tuple(dict.fromkeys(request.hosts))
    every, _ = fleet.hosts(after=None, limit=EVERY_HOST)
    away = (HostState.FAILED, HostState.LOST)
    sound = tuple(host.name for host in every if host.state not in away)
    if not sound:
        raise Invalid("hosts: every host of the fleet has failed")
    return sound
