"""The settings with their defaults and bounds. `config_reading.py` reads them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from forewarn.core import session_cookies
from forewarn.core.basic_types import Action, HostTask
from forewarn.core.policy import Policy
from forewarn.core.retention import SHORTEST


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestSettings:
    """The guest endpoint. `guest/settings.py` has the form that the endpoint uses."""

    listen: tuple[str, ...] = ("127.0.0.1:8169",)
    rate: float = 5.0  # requests a second for each machine; 0: no limit
    instance: Literal["full", "name", "off"] = "full"
    location: str = "local"  # in the instance metadata of machines that declare none
    size: str = "standard"  # the same
    preview: bool = False  # offer api-versions that are not generally available
    lenient_header_on_post: bool = False
    names: tuple[str, ...] = ()  # accepted in a Host header
    check_mac: bool = True  # refuse a machine's address from another MAC than the declared one
    connections: int = 0  # of all guests together; 0: as many as file descriptors allow
    connections_per_address: int = 64  # of one machine, and of all unknown callers together

    def __post_init__(self) -> None:
        _at_least_one(self.connections_per_address)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataProxySettings:
    """A metadata proxy, which calls on behalf of guests and signs their ids."""

    listen: tuple[str, ...] = ()  # the addresses that the proxy calls; none: there is no proxy
    callers: tuple[str, ...] = ()  # the source addresses of the proxy
    secret_file: str | None = None  # the secret that the proxy signs with


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The operator API."""

    listen: tuple[str, ...] = ("127.0.0.1:8170",)
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()  # https://NAME of a proxy that terminates TLS
    certificate: str | None = None  # PEM files; both or neither
    key: str | None = None
    connections: int = 512  # of all callers together
    connections_per_address: int = 128
    rate: float = 100.0  # calls a second with one token, or from one address without a token; 0: no limit
    calls: int = 32  # concurrent calls with one token; 0: no limit
    streams: int = 20  # concurrent streams with one token; 0: no limit
    session: timedelta = session_cookies.USUAL_LIFE  # the life of a browser session, in real time

    def __post_init__(self) -> None:
        if not self.listen:
            raise ValueError("expected at least one address")
        _at_least_one(self.connections, self.connections_per_address)
        if not session_cookies.SHORTEST_LIFE <= self.session <= session_cookies.LONGEST_LIFE:
            raise ValueError("expected from 1 m to 400 d")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Webhooks."""

    # Which addresses the webhooks of projects may use. The server calls them from its own network.
    project_targets: Literal["public", "any"] = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTimes:
    """How long a step of the simulated driver takes for each kind of order: published medians."""

    restart: timedelta = timedelta(seconds=90)
    redeploy: timedelta = timedelta(minutes=5)
    move: timedelta = timedelta(minutes=5)
    freeze: timedelta = timedelta(minutes=5)
    evict: timedelta = timedelta(minutes=2)
    terminate: timedelta = timedelta(minutes=2)
    start: timedelta = timedelta()
    maintenance: timedelta = timedelta(minutes=5)
    service: timedelta = timedelta(minutes=10)  # the work on the host itself; `move` applies to its machines
    degrade: timedelta = timedelta(minutes=5)
    fail: timedelta = timedelta(minutes=5)

    def of(self, action: Action) -> timedelta:
        """Return how long a step of an order takes."""
        taken: timedelta = getattr(self, action.value)
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTimeouts:
    """The timeouts of single hooks; zero: the common timeout."""

    cordon: timedelta = timedelta()
    before: timedelta = timedelta()
    work: timedelta = timedelta()
    after: timedelta = timedelta()
    uncordon: timedelta = timedelta()
    health: timedelta = timedelta()
    fence: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineHookSettings:
    """The commands that run before and after the work on each machine: a program and its arguments."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    timeout: timedelta = timedelta(minutes=1)  # real time, for each call

    def __post_init__(self) -> None:
        _check_hooks(self.timeout, (self.before, self.after))


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """The commands for work on hosts, one for each task: a program and its arguments."""

    cordon: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    work: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    uncordon: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    fence: tuple[str, ...] = ()
    timeout: timedelta = timedelta(minutes=10)  # real time, for each call
    timeouts: HookTimeouts = field(default_factory=HookTimeouts)
    retries: int = 0  # further attempts after a failure
    machine: MachineHookSettings = field(default_factory=MachineHookSettings)

    def __post_init__(self) -> None:
        _check_hooks(self.timeout, map(self.command, HostTask))

    def command(self, task: HostTask) -> tuple[str, ...]:
        """Return the command of a task; an empty tuple if it has none."""
        command: tuple[str, ...] = getattr(self, task.value)
        return command

    def timeout_of(self, task: HostTask) -> timedelta:
        """Return the timeout of a task's command."""
        own: timedelta = getattr(self.timeouts, task.value)
        return own or self.timeout

    @property
    def tasks(self) -> frozenset[HostTask]:
        """The tasks that have a command."""
        return frozenset(task for task in HostTask if self.command(task))


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """The history."""

    keep: timedelta | None = None  # how long records are kept; None: forever

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < SHORTEST:
            raise ValueError("expected at least 1d, or forever")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The log, on stderr."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    syslog: str | None = None  # the target of audit lines: a path such as /dev/log, or HOST:PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings."""

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
    # The settings of drivers by name; each kind of driver parses its own with `read_table`.
    drivers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    metadata_proxy: MetadataProxySettings = field(default_factory=MetadataProxySettings)


def _check_hooks(timeout: timedelta, commands: Iterable[tuple[str, ...]]) -> None:
    if timeout <= timedelta():
        raise ValueError("expected a time greater than zero")
    if any(command and not command[0] for command in commands):
        raise ValueError("expected a program and its arguments")


def _at_least_one(*numbers: int) -> None:
    if min(numbers) < 1:
        raise ValueError("expected at least 1")
