"""The interfaces between the API and its server, and the services that endpoints use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Protocol, TypeVar

from starlette.requests import Request

from forewarn.api.inputs import RequestInput, TransactionInput, TransactionScope
from forewarn.api.limits import BodyLimits, CallerLimits
from forewarn.control.all_use_cases import CallerReads, UseCases, check_operator
from forewarn.control.driver import Listing
from forewarn.control.engine.driver_calls import DriverCallCounts
from forewarn.control.idempotent_calls import IdempotentCalls
from forewarn.control.use_case import ExclusiveJob
from forewarn.core import access
from forewarn.core.errors import ForewarnError
from forewarn.core.model.found_fleet import FoundFleet
from forewarn.core.model.host import Host
from forewarn.core.scope import Scope
from forewarn.core.session_cookies import Identified
from forewarn.core.webhook_rules import Webhook
from forewarn.durations import Distribution, ReadCounts
from forewarn.store.batch import ScopedTransaction, Transact, Transaction
from forewarn.supervision import Supervisor

T = TypeVar("T")


# An operator's other reads continue while a large plan is computed.
READS_AT_ONCE = 4
# Each reader thread competes with the worker for the interpreter. If a project reads on two threads, the
# approvals of other projects' guests take 50 % longer (`bench --only tenants`).
PROJECT_READS_AT_ONCE = 1


class RunUseCase(Protocol):
    """Runs a use case on the worker thread."""

    async def __call__(self, job: Callable[[Transaction], T] | ExclusiveJob[T], /) -> T:
        """Return the result when its effect is visible; raise the job's errors."""
        ...


class RunRead(Protocol):
    """Runs a read on a reader thread."""

    async def __call__(self, job: Callable[[], T], /) -> T:
        """Return the result; raise the job's errors."""
        ...


class CallerRead(Protocol):
    """Runs a caller's read on a reader thread."""

    async def __call__(self, job: Callable[[CallerReads], T], /) -> T:
        """Return the result; raise the job's errors."""
        ...


class ClockReading(Protocol):
    """The server's clock."""

    @property
    def kind(self) -> str:
        """The value of `--clock`."""
        ...

    @property
    def speed(self) -> float:
        """Seconds of service time per second of real time."""
        ...

    @property
    def offset(self) -> timedelta:
        """Service time minus system time."""
        ...

    def now(self) -> datetime:
        """Return service time."""
        ...


class Timekeeping(ClockReading, Protocol):
    """The server's clock, which operators can advance if it is manual."""

    def begin_advance(self, tx: Transaction, seconds: float, *, by: str) -> datetime:
        """Record an advance and return its target; Conflict if the clock is not manual."""
        ...

    def advance(self, transact: Transact, seconds: float, *, by: str) -> None:
        """Advance the clock and do all due work; Conflict if the clock is not manual."""
        ...

    def run_to(self, target: datetime) -> None:
        """Advance the clock to a time and do all due work. A time in the past has no effect."""
        ...


class WebhookSender(Protocol):
    """Delivers records to webhooks."""

    async def send_test(self, webhook: Webhook, /) -> str | None:
        """Send a test event to a webhook; return the error, or None."""
        ...


class Inventories(Protocol):
    """Lists the machines that drivers know."""

    def lister(self, source: str, /) -> Listing:
        """Return a driver that can list machines; Invalid if this one cannot."""
        ...

    async def ask(self, source: str, hosts: Sequence[Host], /) -> FoundFleet:
        """Return the machines that a driver finds. Hosts that do not answer are marked unreachable."""
        ...


class Probes(Protocol):
    """The health of the server."""

    def unhealthy(self) -> str | None:
        """Return why the server should be restarted; None if it is healthy."""
        ...

    def unready(self) -> str | None:
        """Return why the server cannot take requests now; None if it can."""
        ...

    def writable(self) -> bool:
        """Return whether the last write to the database succeeded."""
        ...

    def silences(self) -> int:
        """Return how often the database stopped answering."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """Settings of the API."""

    names: tuple[str, ...] = ()  # accepted in the Host header, besides addresses and localhost
    origins: tuple[str, ...] = ()  # URLs at which browsers reach a proxy that ends TLS
    limits: CallerLimits = field(default_factory=CallerLimits)
    bodies: BodyLimits = field(default_factory=BodyLimits)
    # Real seconds between heartbeats of the stream. Proxies close idle connections later than this.
    heartbeat: float = 15.0
    # A stream whose client reads nothing for this time is closed. The client can resume.
    patience: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDependencies:
    """The parts of the server that the services of all callers share."""

    use_cases: UseCases
    run: RunUseCase  # ahead of the queues of callers
    run_for: Callable[[str], RunUseCase]  # in the queue of a caller, by its name
    read: RunRead  # on a reader thread, ahead of the queues of callers
    read_for: Callable[[str, int], RunRead]  # in the queue of a caller, with a maximum of concurrent reads
    pushing: WebhookSender
    inventories: Inventories
    timekeeper: Timekeeping
    probes: Probes
    guest_counters: Callable[[], Mapping[str, float]] = dict  # for metrics, by name
    refused: Callable[[], Mapping[tuple[str, str], int]] = dict  # refused connections, by port and limit
    background: Supervisor = field(default_factory=Supervisor)
    hang_ups: Callable[[], int] = int  # clients that disconnected before their response
    store_durations: Callable[[], Mapping[tuple[str, ...], Distribution]] = (
        dict  # durations of transactions, by kind
    )
    driver_calls: Callable[[], DriverCallCounts] = DriverCallCounts
    read_counts: Callable[[], ReadCounts] = ReadCounts


class Services:
    """The services that an endpoint uses, with the access of one caller."""

    def __init__(
        self,
        parts: ApiDependencies,
        scope: Scope,
        *,
        by: str = "",
        queue: str | None = None,
        at_once: int = READS_AT_ONCE,
    ) -> None:
        """Take the scope, the name of the caller for records, and its queue. None: the server itself."""
        self.parts = parts
        self.by = by
        self.scope = scope
        # These use cases take a transaction, which has the scope of the caller.
        self.orders = parts.use_cases.orders
        self.webhooks = parts.use_cases.webhooks
        self.rehearsals = parts.use_cases.rehearsals
        self.sessions = parts.use_cases.sessions
        self._run = parts.run if queue is None else parts.run_for(queue)
        self._read = parts.read if queue is None else parts.read_for(queue, at_once)
        self.clock: ClockReading = parts.timekeeper

    async def run(self, job: Callable[[ScopedTransaction], T], /) -> T:
        """Run a job in a transaction with the caller's scope; return when its effect is visible."""
        return await self.run_unscoped(lambda tx: job(tx.scoped(self.scope)))

    async def run_whole(self, job: Callable[[Transaction], T] | ExclusiveJob[T], /) -> T:
        """Run a job in a transaction on everything; Refused for users of a project."""
        check_operator(self.scope)
        return await self.run_unscoped(job)

    async def run_unscoped(self, job: Callable[[Transaction], T] | ExclusiveJob[T], /) -> T:
        """Run a job that narrows its transaction itself.

        Errors are rewritten so that they show only what the caller may see. A reader thread does that, to
        keep the worker free.
        """
        try:
            return await self._run(job)
        except ForewarnError as error:
            reads, refused = self.reads, error
            if not reads.must_redact(refused):
                raise
        raise await self._read(lambda: reads.redacted_error(refused))

    async def read(self, job: Callable[[CallerReads], T], /) -> T:
        """Run a read on a reader thread. It sees the effect of every earlier response.

        Errors are rewritten so that they show only what the caller may see.
        """
        reads = self.reads
        return await self._read(lambda: reads.read_redacted(lambda: job(reads)))

    @property
    def reads(self) -> CallerReads:
        """The caller's reads. Call them only in `read`, because they block."""
        return self.parts.use_cases.reads(self.scope)

    async def run_read(self, job: Callable[[], T], /) -> T:
        """Run a read that the server itself needs."""
        return await self.parts.read(job)

    def reads_in(self, tx: Transaction) -> CallerReads:
        """Return the caller's reads in an open transaction."""
        return self.parts.use_cases.reads_in(tx, self.scope)

    def scoped(self, caller: access.Caller) -> "Services":
        """Return the services of a caller. All users of a project share one queue."""
        scope = Scope(caller=caller.project)
        if caller.project is None:
            return Services(self.parts, scope, by=caller.name, queue=f"token {caller.name}")
        queue = f"project {caller.project}"
        return Services(self.parts, scope, by=caller.name, queue=queue, at_once=PROJECT_READS_AT_ONCE)

    @property
    def fleet(self) -> UseCases:
        """The use cases of the whole fleet; Refused for users of a project."""
        check_operator(self.scope)
        return self.parts.use_cases

    @property
    def inventories(self) -> Inventories:
        """The inventories of drivers; Refused for users of a project."""
        check_operator(self.scope)
        return self.parts.inventories

    @property
    def answering(self) -> IdempotentCalls:
        """The saved answers of idempotent calls; Refused for users of a project."""
        check_operator(self.scope)
        return self.parts.use_cases.answering

    @property
    def timekeeper(self) -> Timekeeping:
        """The clock that can be advanced; Refused for users of a project."""
        check_operator(self.scope)
        return self.parts.timekeeper


def _all_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _caller(request: Request) -> access.Caller:
    caller: access.Caller = request.state.caller
    return caller


def _services(request: Request) -> Services:
    return _all_services(request).scoped(_caller(request))


# The open transaction of a POST, by its scope.
ScopedTx = Annotated[ScopedTransaction, TransactionInput(TransactionScope.CALLER)]
WholeTx = Annotated[Transaction, TransactionInput(TransactionScope.WHOLE)]
OwnTx = Annotated[Transaction, TransactionInput(TransactionScope.OWN)]

# The caller's reads. An endpoint that takes them runs on a reader thread.
CallerReading = Annotated[CallerReads, RequestInput(lambda request: _services(request).reads)]
# The services of the caller; of the server itself, for an endpoint that needs no token.
Service = Annotated[Services, RequestInput(_services)]
OpenService = Annotated[Services, RequestInput(_all_services)]

# The name of the caller, which records show.
CallerName = Annotated[str, RequestInput(lambda request: _caller(request).name)]
# The caller with its role and project.
KnownCaller = Annotated[access.Caller, RequestInput(_caller)]
# The caller with its token or session.
IdentifiedCaller = Annotated[Identified, RequestInput(lambda request: request.state.identified)]
