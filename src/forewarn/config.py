"""Settings as they are declared: each with its default and its bounds. `config_reading.py` reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from forewarn.core import session_cookies
from forewarn.core.basic_types import Action, HostTask
from forewarn.core.policy import Policy
from forewarn.core.retention import SHORTEST


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestSettings:
    """The guest endpoint, as people set it; `guest/settings.py` has it as the endpoint needs it."""

    listen: tuple[str, ...] = ("127.0.0.1:8169",)
    rate: float = 5.0  # requests a second for each machine; 0: no limit
    instance: Literal["full", "name", "off"] = "full"
    location: str = "local"  # what instance metadata tells of machines that declare none
    size: str = "standard"
    preview: bool = False  # whether to offer versions that are not generally available
    lenient_header_on_post: bool = False
    names: tuple[str, ...] = ()  # names that a Host header may carry
    check_mac: bool = True  # refuse a machine's address from another MAC than the declared one
    connections: int = 0  # of all guests together; 0: as many as file descriptors allow
    connections_per_address: int = 64  # of one machine, and of all unknown callers together

    def __post_init__(self) -> None:
        _at_least_one(self.connections_per_address)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataProxySettings:
    """Another metadata proxy, which calls in the place of guests and signs for whom."""

    listen: tuple[str, ...] = ()  # where it calls; none: there is no such proxy
    callers: tuple[str, ...] = ()  # the addresses that it calls from
    secret_file: str | None = None  # the secret that it signs with


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The operator API."""

    listen: tuple[str, ...] = ("127.0.0.1:8170",)
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()  # where browsers reach it through a proxy that ends TLS: https://NAME
    certificate: str | None = None  # files, in PEM; both or neither
    key: str | None = None
    connections: int = 512  # of all callers together
    connections_per_address: int = 128
    rate: float = 100.0  # calls a second of one token, or of an address without one; 0: no limit
    calls: int = 32  # of one token at once; 0: no limit
    streams: int = 20  # the same
    session: timedelta = (
        session_cookies.USUAL_LIFE
    )  # how long a browser that signed in stays so, in real time

    def __post_init__(self) -> None:
        if not self.listen:
            raise ValueError("expected at least one address")
        _at_least_one(self.connections, self.connections_per_address)
        if not session_cookies.SHORTEST_LIFE <= self.session <= session_cookies.LONGEST_LIFE:
            raise ValueError("expected from 1 m to 400 d")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Where records are pushed to."""

    # Where webhooks may lead that the people of projects add. The server calls them from where it stands.
    project_targets: Literal["public", "any"] = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTimes:
    """How long the simulated driver takes for each kind of order: published medians."""

    restart: timedelta = timedelta(seconds=90)
    redeploy: timedelta = timedelta(minutes=5)
    move: timedelta = timedelta(minutes=5)
    freeze: timedelta = timedelta(minutes=5)
    evict: timedelta = timedelta(minutes=2)
    terminate: timedelta = timedelta(minutes=2)
    start: timedelta = timedelta()
    maintenance: timedelta = timedelta(minutes=5)
    service: timedelta = timedelta(minutes=10)  # the work on the host itself; its machines move as others do
    degrade: timedelta = timedelta(minutes=5)
    fail: timedelta = timedelta(minutes=5)

    def of(self, action: Action) -> timedelta:
        """Return how long a step of an order takes."""
        taken: timedelta = getattr(self, action.value)
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTimeouts:
    """How long single hooks may take; no time: as long as all."""

    cordon: timedelta = timedelta()
    before: timedelta = timedelta()
    work: timedelta = timedelta()
    after: timedelta = timedelta()
    uncordon: timedelta = timedelta()
    health: timedelta = timedelta()
    fence: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineHookSettings:
    """What the server runs before and after the work on each machine: a program and its arguments."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    timeout: timedelta = timedelta(minutes=1)  # of real time, for each call

    def __post_init__(self) -> None:
        if self.timeout <= timedelta():
            raise ValueError("expected more than no time")
        if any(command and not command[0] for command in (self.before, self.after)):
            raise ValueError("expected a program and its arguments")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """What the server runs itself for work on hosts: a command for each task, a program and its arguments."""

    cordon: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    work: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    uncordon: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    fence: tuple[str, ...] = ()
    timeout: timedelta = timedelta(minutes=10)  # of real time, for each call
    timeouts: HookTimeouts = field(default_factory=HookTimeouts)
    retries: int = 0  # further attempts of one that fails
    machine: MachineHookSettings = field(default_factory=MachineHookSettings)

    def __post_init__(self) -> None:
        if self.timeout <= timedelta():
            raise ValueError("expected more than no time")
        if any(command and not command[0] for command in map(self.command, HostTask)):
            raise ValueError("expected a program and its arguments")

    def command(self, task: HostTask) -> tuple[str, ...]:
        """Return what is run for a task; nothing if there is no hook for it."""
        command: tuple[str, ...] = getattr(self, task.value)
        return command

    def timeout_of(self, task: HostTask) -> timedelta:
        """Return how long the hook of a task may take."""
        own: timedelta = getattr(self.timeouts, task.value)
        return own or self.timeout

    @property
    def tasks(self) -> frozenset[HostTask]:
        """The tasks that there is a hook for."""
        return frozenset(task for task in HostTask if self.command(task))


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """The history."""

    keep: timedelta | None = None  # how long records are kept; None: for ever

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < SHORTEST:
            raise ValueError("expected at least 1d, or forever")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The log, on stderr."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    syslog: str | None = None  # where changes are told of too: a path such as /dev/log, or HOST:PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of them."""

    database: str = "sqlite:///forewarn.db"
    fleet: str | None = None
    clock: str = "system"
    guest: GuestSettings = field(default_factory=GuestSettings)
    operator: OperatorSettings = field(default_factory=OperatorSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    times: Policy = field(default_factory=Policy)
    history: HistorySettings = field(default_factory=HistorySettings)
    log: LogSettings = field(default_factory=LogSettings)
    simulated: SimulatedTimes = field(default_factory=SimulatedTimes)
    hooks: HookSettings = field(default_factory=HookSettings)
    # What is said of drivers, by the names that hosts call them by; each kind reads its own (`read_table`).
    drivers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    metadata_proxy: MetadataProxySettings = field(default_factory=MetadataProxySettings)


def _at_least_one(*numbers: int) -> None:
    if min(numbers) < 1:
        raise ValueError("expected at least 1")
