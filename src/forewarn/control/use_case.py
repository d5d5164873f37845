"""How a use case loads and saves: what its scope sees, or everything."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime

from forewarn.clock import Clock
from forewarn.control.disclosing import V, disclosed
from forewarn.control.known_drivers import KnownDrivers
from forewarn.control.plan_prechecks import PlanPrechecks
from forewarn.control.reached_hosts import ReachedHosts
from forewarn.control.steps_under_way import StepsUnderWay, changed, reached_anew, to_precheck
from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import Slice
from forewarn.core.policy import Policy
from forewarn.core.scope import Scope
from forewarn.store.batch import ScopedTransaction, Transact
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.snapshots import ReadStore
from forewarn.store.sql import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingContext:
    """What every use case works with that only reads; any thread may run it."""

    store: ReadStore
    clock: Clock
    policy: Policy
    new_id: Callable[[], str]
    real_now: Callable[[], datetime]  # the world's own time, for what the service's clock does not govern
    drivers: KnownDrivers = field(default_factory=KnownDrivers)
    reached: ReachedHosts = field(default_factory=ReachedHosts)  # by their drivers
    plan_prechecks: PlanPrechecks = field(default_factory=PlanPrechecks)
    preview: bool = False  # whether guests are offered versions that are not generally available


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(ReadingContext):
    """What every use case works with."""

    store: Store
    under_way: StepsUnderWay = field(default_factory=StepsUnderWay)  # what drivers are to be told

    def to_read(self, store: ReadStore) -> ReadingContext:
        """Return the same for those that only read, with what they read from."""
        mine = {each.name: getattr(self, each.name) for each in fields(ReadingContext)}
        return ReadingContext(**{**mine, "store": store})


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineContext(Context):
    """What the engine works with: it opens transactions of its own, one after the other."""

    transact: Transact

    @classmethod
    def of(cls, context: Context, transact: Transact) -> "EngineContext":
        """Add what commits to a context."""
        mine = {each.name: getattr(context, each.name) for each in fields(Context)}
        return cls(**mine, transact=transact)


class Reading:
    """Shows what there is, or what would be, and saves nothing."""

    def __init__(self, context: ReadingContext) -> None:
        self._clock = context.clock
        self._policy = context.policy
        self._new_id = context.new_id
        self._real_now = context.real_now
        self._drivers_known = context.drivers
        self._reached = context.reached

    def _draft(self, around: Slice, *, now: datetime | None = None) -> Draft:
        return Draft(around, now=now or self._clock.now(), new_id=self._new_id)


class ScopedReading(Reading):
    """Shows what its scope sees, and nothing else."""

    def __init__(self, context: ReadingContext, scope: Scope) -> None:
        super().__init__(context)
        self._scope = scope
        self._store = context.store.scoped(scope)

    def _disclosed(self, fleet: FleetQueries, values: Iterable[V]) -> Sequence[V]:
        """Return what was found as the caller may see it."""
        return disclosed(fleet, values, scope=self._scope)


class FleetReading(Reading):
    """Shows what no project has a share in; never in reach of a project's token."""

    def __init__(self, context: ReadingContext) -> None:
        super().__init__(context)
        self._store = context.store


class UseCase(Reading):
    """Decides on drafts, and saves them in the transaction that it is given."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._store: ReadStore = context.store
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
