"""What the API needs of the server it is part of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Protocol, TypeVar

from starlette.requests import Request

from forewarn.api.inputs import FromRequest, OpenedBy, Reach
from forewarn.api.limits import BodyLimits, CallerLimits
from forewarn.control.all_use_cases import CallerReads, UseCases, check_operator
from forewarn.control.driver import Listing
from forewarn.control.engine.driver_calls import DriverCallCounts
from forewarn.control.idempotent_calls import IdempotentCalls
from forewarn.control.use_case import Alone
from forewarn.core import access
from forewarn.core.errors import ForewarnError
from forewarn.core.model.found_fleet import FoundFleet
from forewarn.core.model.host import Host
from forewarn.core.webhook_rules import Webhook
from forewarn.core.scope import Scope
from forewarn.core.session_cookies import Identified
from forewarn.durations import Distribution, ReadCounts
from forewarn.store.batch import ScopedTransaction, Transact, Transaction
from forewarn.supervision import Supervisor

T = TypeVar("T")


# An operator's other reads go on while a large plan is made.
READS_AT_ONCE = 4
# Each thread that puts a list together takes the interpreter from the worker: a project that reads with two
# makes the approvals of another project's guests wait half as long again (`bench --only tenants`).
PROJECT_READS_AT_ONCE = 1


class RunUseCase(Protocol):
    """Has the worker run a use case."""

    async def __call__(self, job: Callable[[Transaction], T] | Alone[T], /) -> T:
        """Return the job's answer once its effect can be seen; its errors come through."""
        ...


class RunReading(Protocol):
    """Runs a read on one of the threads that only read."""

    async def __call__(self, job: Callable[[], T], /) -> T:
        """Return the read's answer; its errors come through."""
        ...


class Read(Protocol):
    """Reads for a caller, on one of the threads that only read."""

    async def __call__(self, job: Callable[[CallerReads], T], /) -> T:
        """Return the job's answer; its errors come through."""
        ...


class ClockReading(Protocol):
    """The clock, as callers read it."""

    @property
    def kind(self) -> str:
        """The clock's name, as `--clock` takes it."""
        ...

    @property
    def speed(self) -> float:
        """Seconds of service time for each second of the world."""
        ...

    @property
    def offset(self) -> timedelta:
        """How far service time is ahead of the system's."""
        ...

    def now(self) -> datetime:
        """Return the present moment."""
        ...


class TurnedTime(ClockReading, Protocol):
    """The clock, as operators turn it."""

    def begin_advance(self, tx: Transaction, seconds: float, *, by: str) -> datetime:
        """Record that the clock is turned, and return to where; Conflict unless it is a manual one."""
        ...

    def advance(self, transact: Transact, seconds: float, *, by: str) -> None:
        """Turn the clock and do all that falls due; Conflict unless it is a manual one."""
        ...

    def run_to(self, target: datetime) -> None:
        """Turn the clock and do all that falls due; nothing if it has been there."""
        ...


class Pushing(Protocol):
    """Pushes records to webhooks."""

    async def try_out(self, webhook: Webhook, /) -> str | None:
        """Call a webhook with something that is no record; returns what went wrong."""
        ...


class Inventories(Protocol):
    """Asks drivers what there is."""

    def lister(self, source: str, /) -> Listing:
        """Return a driver that lists what there is; Invalid if this one does not."""
        ...

    async def ask(self, source: str, hosts: Sequence[Host], /) -> FoundFleet:
        """Return what a driver finds; hosts that do not answer are unreachable."""
        ...


class Probes(Protocol):
    """What the server knows about its own health."""

    def unhealthy(self) -> str | None:
        """Return why the service does not work, so that it should be restarted; None if it does."""
        ...

    def unready(self) -> str | None:
        """Return why requests should go elsewhere for now; None if they need not."""
        ...

    def writable(self) -> bool:
        """Return whether something could be saved when that was last tried."""
        ...

    def silences(self) -> int:
        """Return how often the database has fallen silent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """How the API behaves."""

    names: tuple[str, ...] = ()  # that a Host header may give besides an address and localhost
    origins: tuple[str, ...] = ()  # where browsers reach it through a proxy that ends TLS
    limits: CallerLimits = field(default_factory=CallerLimits)
    bodies: BodyLimits = field(default_factory=BodyLimits)
    # Of the stream, in real seconds. Sooner than proxies close a silent connection.
    heartbeat: float = 15.0
    # A reader that has taken nothing for so long is cut off; it can resume.
    patience: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDependencies:
    """What the services of all callers share."""

    use_cases: UseCases
    run: RunUseCase  # before what callers wait for
    run_for: Callable[[str], RunUseCase]  # in a caller's turn, by its name
    read: RunReading  # the same for what only reads
    read_for: Callable[[str, int], RunReading]  # and with so many of its reads at once
    pushing: Pushing
    inventories: Inventories
    timekeeper: TurnedTime
    probes: Probes
    guest_counters: Callable[[], Mapping[str, float]] = dict  # for the metrics, by name
    refused: Callable[[], Mapping[tuple[str, str], int]] = dict  # connections, by port and limit
    background: Supervisor = field(default_factory=Supervisor)
    hang_ups: Callable[[], int] = int  # of callers, before they were answered
    store_durations: Callable[[], Mapping[tuple[str, ...], Distribution]] = dict  # of transactions, by kind
    driver_calls: Callable[[], DriverCallCounts] = DriverCallCounts
    read_counts: Callable[[], ReadCounts] = ReadCounts


class Services:
    """All that endpoints use, for one caller."""

    def __init__(
        self, parts: ApiDependencies, scope: Scope, *, caller: str | None = None, at_once: int = READS_AT_ONCE
    ) -> None:
        """Take the scope and, unless it is the server itself, whose turns are taken."""
        self._parts = parts
        self.scope = scope
        # These take a transaction, by which they know what the caller sees.
        self.orders = parts.use_cases.orders
        self.webhooks = parts.use_cases.webhooks
        self.rehearsals = parts.use_cases.rehearsals
        self.sessions = parts.use_cases.sessions
        self._run = parts.run if caller is None else parts.run_for(caller)
        self._read = parts.read if caller is None else parts.read_for(caller, at_once)
        self.pushing = parts.pushing
        self.probes = parts.probes
        self.guest_counters = parts.guest_counters
        self.refused = parts.refused
        self.background = parts.background
        self.hang_ups = parts.hang_ups
        self.store_durations = parts.store_durations
        self.driver_calls = parts.driver_calls
        self.read_counts = parts.read_counts
        self.clock: ClockReading = parts.timekeeper

    async def run(self, job: Callable[[ScopedTransaction], T], /) -> T:
        """Run a job in a transaction of the caller's scope; return its answer once its effect can be seen."""
        return await self.run_unscoped(lambda tx: job(tx.scoped(self.scope)))

    async def run_whole(self, job: Callable[[Transaction], T] | Alone[T], /) -> T:
        """Run a job in a transaction on everything; Refused to a project's people."""
        check_operator(self.scope)
        return await self.run_unscoped(job)

    async def run_unscoped(self, job: Callable[[Transaction], T] | Alone[T], /) -> T:
        """Run a job that narrows its transaction itself.

        Its errors come in the caller's words, for which a thread that reads looks: the worker has others to
        serve.
        """
        try:
            return await self._run(job)
        except ForewarnError as error:
            reads, refused = self.reads, error
            if not reads.must_redact(refused):
                raise
        raise await self._read(lambda: reads.redacted_error(refused))

    async def read(self, job: Callable[[CallerReads], T], /) -> T:
        """Return the answer of what only reads, beside whatever is being changed.

        It sees all that was answered before. Its errors come in the caller's words.
        """
        reads = self.reads
        return await self._read(lambda: reads.read_redacted(lambda: job(reads)))

    @property
    def reads(self) -> CallerReads:
        """What the caller may read, for `read` alone: it takes its time."""
        return self._parts.use_cases.reads(self.scope)

    async def run_read(self, job: Callable[[], T], /) -> T:
        """Return the answer of something that only reads, and that the server itself needs."""
        return await self._parts.read(job)

    def reads_in(self, tx: Transaction) -> CallerReads:
        """What the caller may read, as an open transaction sees it."""
        return self._parts.use_cases.reads_in(tx, self.scope)

    def scoped(self, caller: access.Caller) -> "Services":
        """Return the services of a caller; the people of a project share its turns, however many they are."""
        scope = Scope(caller=caller.project)
        if caller.project is None:
            return Services(self._parts, scope, caller=f"token {caller.name}")
        turns = f"project {caller.project}"
        return Services(self._parts, scope, caller=turns, at_once=PROJECT_READS_AT_ONCE)

    @property
    def fleet(self) -> UseCases:
        """What belongs to no project; Refused to a project's people."""
        check_operator(self.scope)
        return self._parts.use_cases

    @property
    def inventories(self) -> Inventories:
        """What asks drivers what there is; Refused to a project's people."""
        check_operator(self.scope)
        return self._parts.inventories

    @property
    def answering(self) -> IdempotentCalls:
        """What carries out calls once; Refused to a project's people, whom the endpoints call it for."""
        check_operator(self.scope)
        return self._parts.use_cases.answering

    @property
    def timekeeper(self) -> TurnedTime:
        """What turns the clock; Refused to a project's people."""
        check_operator(self.scope)
        return self._parts.timekeeper


def _all_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _known(request: Request) -> access.Caller:
    """Return who asks, as the authentication has found out."""
    caller: access.Caller = request.state.caller
    return caller


def _services(request: Request) -> Services:
    """Return what the caller may reach: one project's things, or all."""
    return _all_services(request).scoped(_known(request))


# The open transaction of a POST: of what the caller sees; of everything, refused to a project's people;
# of everything for any caller, for what is its own and belongs to no project.
ScopedTx = Annotated[ScopedTransaction, OpenedBy(Reach.CALLER)]
WholeTx = Annotated[Transaction, OpenedBy(Reach.WHOLE)]
OwnTx = Annotated[Transaction, OpenedBy(Reach.OWN)]

# What the caller may read. An endpoint that takes it is run by one of the threads that read.
CallerReading = Annotated[CallerReads, FromRequest(lambda request: _services(request).reads)]
# What the caller may reach; for an endpoint that needs no token, what there is.
Service = Annotated[Services, FromRequest(_services)]
OpenService = Annotated[Services, FromRequest(_all_services)]

# Who asks, as records name them.
CallerName = Annotated[str, FromRequest(lambda request: _known(request).name)]
# The same with role and project.
KnownCaller = Annotated[access.Caller, FromRequest(_known)]
# The same, and what it is known by.
IdentifiedCaller = Annotated[Identified, FromRequest(lambda request: request.state.identified)]
