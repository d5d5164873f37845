"""How a use case loads and saves, what its scope sees or everything, and how the worker is given one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from forewarn.clock import Clock
from forewarn.control.disclosing import V, disclosed
from forewarn.control.driver import KnownDrivers
from forewarn.control.plan_prechecks import PlanPrechecks
from forewarn.control.host_reachability import HostReachability
from forewarn.control.steps_under_way import StepsUnderWay, changed, reached_anew, to_precheck
from forewarn.core.draft import Draft
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import Slice
from forewarn.core.policy import Policy
from forewarn.core.scope import Scope
from forewarn.store.batch import ScopedTransaction, Transact, Transaction
from forewarn.store.prefetch import Prefetch
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.snapshots import ReadStore, ScopedReadStore
from forewarn.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every use case works with."""

    store: ReadStore
    clock: Clock
    policy: Policy
    new_id: Callable[[], str]
    real_now: Callable[[], datetime]  # the world's own time, for what the service's clock does not govern
    drivers: KnownDrivers = field(default_factory=KnownDrivers)
    reached: HostReachability = field(default_factory=HostReachability)  # by their drivers
    plan_prechecks: PlanPrechecks = field(default_factory=PlanPrechecks)
    preview: bool = False  # whether guests are offered versions that are not generally available
    under_way: StepsUnderWay = field(default_factory=StepsUnderWay)  # what drivers are to be told


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineContext(Context):
    """What the engine works with: it opens transactions of its own, one after the other."""

    store: Store
    transact: Transact
    keep_history: timedelta | None = None  # how long records are kept; None: for ever

    @classmethod
    def of(
        cls, context: Context, *, store: Store, transact: Transact, keep_history: timedelta | None = None
    ) -> "EngineContext":
        """Add what commits to a context."""
        mine = {each.name: getattr(context, each.name) for each in fields(Context)}
        return cls(**{**mine, "store": store, "transact": transact}, keep_history=keep_history)


class _Base:
    """What every use case takes from its context."""

    def __init__(self, context: Context) -> None:
        self._clock = context.clock
        self._policy = context.policy
        self._new_id = context.new_id
        self._real_now = context.real_now
        self._drivers_known = context.drivers
        self._reached = context.reached

    def _draft(self, around: Slice, *, now: datetime | None = None) -> Draft:
        return Draft(around, now=now or self._clock.now(), new_id=self._new_id)


class Reading(_Base):
    """Reads everything, and saves nothing."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._store: ReadStore = context.store


class ScopedReading(_Base):
    """Reads what its scope sees, and nothing else."""

    def __init__(self, context: Context, scope: Scope) -> None:
        super().__init__(context)
        self.scope = scope
        self._store: ScopedReadStore = context.store.scoped(scope)

    def _disclosed(self, fleet: FleetQueries, values: Iterable[V]) -> Sequence[V]:
        """Return what was found as the caller may see it."""
        return disclosed(fleet, values, scope=self.scope)


class UseCase(Reading):
    """Decides on drafts, and saves them in the transaction that it is given."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._under_way = context.under_way

    @contextmanager
    def _saving(
        self,
        tx: ScopedTransaction,
        around: Slice | None = None,
        *,
        now: datetime | None = None,
        rollout: Rollout | None = None,
    ) -> Iterator[Draft]:
        """Save what is decided on a part of the fleet, with a rollout that was; None: only records."""
        draft = self._draft(tx.rules.around() if around is None else around, now=now)
        yield draft
        changes = draft.changes()
        draft.take_saved(
            tx.changes.save(changes if rollout is None else replace(changes, rollouts=(rollout,)))
        )
        running, ended = changed(draft)
        hosts = reached_anew(draft) if changes.hosts else []
        prechecks = to_precheck(draft) if self._policy.prechecking else []
        if running or ended or hosts or prechecks:
            noted = self._under_way
            tx.after_commit(lambda: noted.note(running, ended, hosts, prechecks), undone=noted.lose)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Alone(Generic[T]):
    """A use case that does more than save: it is given what commits, not an open transaction."""

    work: Callable[[Transact], T]


@dataclass(frozen=True, slots=True)
class ForeseenUseCase(Generic[T]):
    """A use case whose reads are known in part: those that wait together are loaded together."""

    work: Callable[[Transaction], T]
    foreseen: Prefetch

    def __call__(self, tx: Transaction) -> T:
        """Run it in its transaction."""
        return self.work(tx)
