"""Base classes of use cases, and the context that they share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from forewarn.clock import Clock
from forewarn.control.disclosing import V, disclosed
from forewarn.control.driver import KnownDrivers
from forewarn.control.driver_outbox import DriverOutbox, changed_steps, new_prechecks, reconnected_hosts
from forewarn.control.host_reachability import HostReachability
from forewarn.control.plan_prechecks import PlanPrechecks
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
    """The dependencies of every use case."""

    store: ReadStore
    clock: Clock
    policy: Policy
    new_id: Callable[[], str]
    real_now: Callable[[], datetime]  # real time, for everything that the service clock does not govern
    drivers: KnownDrivers = field(default_factory=KnownDrivers)
    reached: HostReachability = field(default_factory=HostReachability)  # by their drivers
    plan_prechecks: PlanPrechecks = field(default_factory=PlanPrechecks)
    preview: bool = False  # whether guests may use preview api-versions
    outbox: DriverOutbox = field(default_factory=DriverOutbox)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineContext(Context):
    """The dependencies of the engine, which opens its own transactions."""

    store: Store
    transact: Transact
    keep_history: timedelta | None = None  # how long to keep records; None: forever

    @classmethod
    def of(
        cls, context: Context, *, store: Store, transact: Transact, keep_history: timedelta | None = None
    ) -> "EngineContext":
        """Extend a context by the means to commit."""
        shared = {each.name: getattr(context, each.name) for each in fields(Context)}
        return cls(**{**shared, "store": store, "transact": transact}, keep_history=keep_history)


class _Base:
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
    """A use case that reads the whole fleet and saves nothing."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._store: ReadStore = context.store


class ScopedReading(_Base):
    """A use case that reads only what its scope may see."""

    def __init__(self, context: Context, scope: Scope) -> None:
        super().__init__(context)
        self.scope = scope
        self._store: ScopedReadStore = context.store.scoped(scope)

    def _disclosed(self, fleet: FleetQueries, values: Iterable[V]) -> Sequence[V]:
        return disclosed(fleet, values, scope=self.scope)


class UseCase(Reading):
    """A use case that decides on a draft and saves it in a given transaction."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._outbox = context.outbox

    @contextmanager
    def _saving(
        self,
        tx: ScopedTransaction,
        around: Slice | None = None,
        *,
        now: datetime | None = None,
        rollout: Rollout | None = None,
    ) -> Iterator[Draft]:
        """Save the draft at the end of the block, together with a rollout if one is given.

        `around` is the part of the fleet that the decision needs. Default: none, which is enough for records.
        """
        draft = self._draft(tx.rules.around() if around is None else around, now=now)
        yield draft
        changes = draft.changes()
        draft.take_saved(
            tx.changes.save(changes if rollout is None else replace(changes, rollouts=(rollout,)))
        )
        running, ended = changed_steps(draft)
        hosts = reconnected_hosts(draft) if changes.hosts else []
        prechecks = new_prechecks(draft) if self._policy.prechecking else []
        if running or ended or hosts or prechecks:
            outbox = self._outbox
            tx.after_commit(
                lambda: outbox.add(running, ended, hosts, prechecks), undone=outbox.mark_incomplete
            )


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExclusiveJob(Generic[T]):
    """A use case that commits by itself: it gets a function that runs transactions, not an open one."""

    work: Callable[[Transact], T]


@dataclass(frozen=True, slots=True)
class PrefetchingUseCase(Generic[T]):
    """A use case whose reads are partly known in advance, so that a batch loads them together."""

    work: Callable[[Transaction], T]
    prefetch: Prefetch

    def __call__(self, tx: Transaction) -> T:
        """Run it in a transaction."""
        return self.work(tx)
