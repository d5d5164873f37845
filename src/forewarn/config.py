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
    """The guest endpoint."""

    #: Addresses of the guest endpoint; `blue@10.0.0.1:80` serves the machines of network `blue`.
    listen: tuple[str, ...] = ("127.0.0.1:8169",)
    #: Requests a second for each machine, with a burst of twice that. 0: no limit.
    rate: float = 5.0
    #: Instance metadata: `full`, `name` (only the machine's name) or `off`.
    instance: Literal["full", "name", "off"] = "full"
    #: `location` in the instance metadata of machines that declare none.
    location: str = "local"
    #: `vmSize` in the instance metadata of machines that declare none.
    size: str = "standard"
    #: Offer the preview api-version 2024-07-09.
    preview: bool = False
    #: Accept POSTs without `Metadata: true`, for old clients.
    lenient_header_on_post: bool = False
    #: Names accepted in a `Host` header, besides IP literals and `localhost`.
    names: tuple[str, ...] = ()
    #: Refuse a machine's address from another MAC than the declared one.
    check_mac: bool = True
    #: Connections of all guests. 0: as many as file descriptors allow.
    connections: int = 0
    #: Connections of one machine, and of all unknown callers together.
    connections_per_address: int = 64

    def __post_init__(self) -> None:
        _at_least_one(self.connections_per_address)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataProxySettings:
    """A metadata proxy, which calls on behalf of guests and signs their ids."""

    #: Addresses that the proxy calls. None: there is no proxy.
    listen: tuple[str, ...] = ()
    #: Source addresses of the proxy. Other connections are closed.
    callers: tuple[str, ...] = ()
    #: File with the secret that the proxy signs machine ids with.
    secret_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The operator API."""

    #: Addresses of the operator API and the console. Other than loopback only after a token exists.
    listen: tuple[str, ...] = ("127.0.0.1:8170",)
    #: Names accepted in a `Host` header.
    names: tuple[str, ...] = ()
    #: Public address of a proxy that terminates TLS: `https://NAME[:PORT]`.
    origins: tuple[str, ...] = ()
    #: PEM file for TLS. Set both `certificate` and `key`.
    certificate: str | None = None
    #: PEM file of the certificate's key.
    key: str | None = None
    #: Connections of all callers, at most an eighth of the file descriptors.
    connections: int = 512
    #: Connections from one address.
    connections_per_address: int = 128
    #: Calls a second with one token, with a burst of twice that. The same applies to each address
    #: without a token. 0: no limit.
    rate: float = 100.0
    #: Concurrent calls with one token. 0: no limit.
    calls: int = 32
    #: Concurrent streams with one token. 0: no limit.
    streams: int = 20
    #: Life of a browser session in real time, from 1m to 400d.
    session: timedelta = session_cookies.USUAL_LIFE

    def __post_init__(self) -> None:
        if not self.listen:
            raise ValueError("expected at least one address")
        _at_least_one(self.connections, self.connections_per_address)
        if not session_cookies.SHORTEST_LIFE <= self.session <= session_cookies.LONGEST_LIFE:
            raise ValueError("expected from 1 m to 400 d")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Webhooks."""

    #: Addresses that webhooks of projects may use: `public`, or `any`.
    project_targets: Literal["public", "any"] = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTimes:
    """How long a step of the simulated driver takes for each kind of order: published medians."""

    #: Duration of a restart.
    restart: timedelta = timedelta(seconds=90)
    #: Duration of a redeploy.
    redeploy: timedelta = timedelta(minutes=5)
    #: Duration of a move.
    move: timedelta = timedelta(minutes=5)
    #: Duration of a freeze.
    freeze: timedelta = timedelta(minutes=5)
    #: Duration of an eviction.
    evict: timedelta = timedelta(minutes=2)
    #: Duration of a termination.
    terminate: timedelta = timedelta(minutes=2)
    #: Duration of a start.
    start: timedelta = timedelta()
    #: Duration of a machine's step in host maintenance.
    maintenance: timedelta = timedelta(minutes=5)
    #: Duration of the work on a host itself; `move` applies to its machines.
    service: timedelta = timedelta(minutes=10)
    #: Duration of a step for a degraded host.
    degrade: timedelta = timedelta(minutes=5)
    #: Duration of a step for a failed host.
    fail: timedelta = timedelta(minutes=5)

    def of(self, action: Action) -> timedelta:
        """Return how long a step of an order takes."""
        taken: timedelta = getattr(self, action.value)
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTimeouts:
    """The timeouts of single hooks; zero: the common timeout."""

    #: Timeout of the `cordon` hook. 0: `timeout` of `[hooks]`.
    cordon: timedelta = timedelta()
    #: Timeout of the `before` hook. 0: `timeout` of `[hooks]`.
    before: timedelta = timedelta()
    #: Timeout of the `work` hook. 0: `timeout` of `[hooks]`.
    work: timedelta = timedelta()
    #: Timeout of the `after` hook. 0: `timeout` of `[hooks]`.
    after: timedelta = timedelta()
    #: Timeout of the `uncordon` hook. 0: `timeout` of `[hooks]`.
    uncordon: timedelta = timedelta()
    #: Timeout of the `health` hook. 0: `timeout` of `[hooks]`.
    health: timedelta = timedelta()
    #: Timeout of the `fence` hook. 0: `timeout` of `[hooks]`.
    fence: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineHookSettings:
    """The commands that run before and after the work on each machine: a program and its arguments."""

    #: Program and arguments to run before the work on a machine.
    before: tuple[str, ...] = ()
    #: Program and arguments to run after the work on a machine.
    after: tuple[str, ...] = ()
    #: Timeout of each call, in real time.
    timeout: timedelta = timedelta(minutes=1)

    def __post_init__(self) -> None:
        _check_hooks(self.timeout, (self.before, self.after))


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """The commands for work on hosts, one for each task: a program and its arguments."""

    #: Program and arguments to run when work on a host is announced.
    cordon: tuple[str, ...] = ()
    #: Program and arguments to run before the work on a host.
    before: tuple[str, ...] = ()
    #: Program and arguments that do the work on a host.
    work: tuple[str, ...] = ()
    #: Program and arguments to run after the work on a host.
    after: tuple[str, ...] = ()
    #: Program and arguments to run when the host takes machines again.
    uncordon: tuple[str, ...] = ()
    #: Program and arguments that check the host after the work.
    health: tuple[str, ...] = ()
    #: Program and arguments that fence a failed host.
    fence: tuple[str, ...] = ()
    #: Timeout of each call, in real time.
    timeout: timedelta = timedelta(minutes=10)
    timeouts: HookTimeouts = field(default_factory=HookTimeouts)
    #: Further attempts after a failure.
    retries: int = 0
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

    #: Age at which records are removed, at least 1d, or `forever`.
    keep: timedelta | None = None

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < SHORTEST:
            raise ValueError("expected at least 1d, or forever")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The log, on stderr."""

    #: `text`, or `json`: one object for each line.
    format: Literal["text", "json"] = "text"
    #: `debug`, `info`, `warning` or `error`.
    level: Literal["debug", "info", "warning", "error"] = "info"
    #: Target of audit lines, for each change: a path such as `/dev/log`, or HOST:PORT.
    syslog: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings."""

    #: `sqlite:///FILE` or `postgresql://USER@HOST/NAME`.
    database: str = "sqlite:///forewarn.db"
    #: Fleet file, applied if it differs from the one applied last.
    fleet: str | None = None
    #: `system`, `manual`, or `xN`: N seconds in each second.
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
