"""Settings: flag over environment over file over default, each with its reason when it is refused.

`[guest] rate` in the file is `FOREWARN_GUEST_RATE` in the environment. Unknown keys in the file are errors.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from forewarn.core import browser_sessions
from forewarn.core.errors import Invalid
from forewarn.core.moments import parse_span
from forewarn.core.policy import SET_ELSEWHERE, Policy
from forewarn.core.retention import SHORTEST
from forewarn.core.spelling import closest, hint
from forewarn.core.words import Action, HostTask

PREFIX = "FOREWARN_"
# Of the command and the tests, and what handlers and gated commands are given.
OTHERS = tuple(
    f"{PREFIX}{name}"
    for name in (
        "SERVER",
        "TOKEN",
        "CA",
        "ENDPOINT",
        "ORDER",
        "MACHINE",
        "EVENT_",
        "SECONDS_LEFT",
        "ATTEMPT",
        "TEST_",
    )
)
FOREVER = "forever"

T = TypeVar("T")


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
        browser_sessions.USUAL_LIFE
    )  # how long a browser that signed in stays so, in real time

    def __post_init__(self) -> None:
        if not self.listen:
            raise ValueError("expected at least one address")
        _at_least_one(self.connections, self.connections_per_address)
        if not browser_sessions.SHORTEST_LIFE <= self.session <= browser_sessions.LONGEST_LIFE:
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


def load(file: str | None, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """Make settings of a file's text, the environment and the flags that were given.

    Flags are named like the keys: `database`, `guest.listen`.
    """
    settings = Settings() if file is None else _from_table(Settings(), _parsed(file), "")
    settings = _from_environment(settings, environment, PREFIX)
    for name, value in flags.items():
        if value is not None:
            settings = _with(settings, name.split("."), value, f"--{name.split('.')[0]}")
    return settings


def read_table(defaults: T, table: Mapping[str, Any], *, where: str) -> T:
    """Make settings of a table, by the types of a dataclass; Invalid says where what is wrong stands."""
    return _from_table(defaults, table, where)


def unknown_names(environment: Mapping[str, str]) -> list[str]:
    """Return a warning for each name in the environment that looks like a setting and is none."""
    known = _names(Settings(), PREFIX)
    said = []
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in known or name.startswith(OTHERS):
            continue
        # Without what all of them begin with, or everything would be close to everything.
        meant = closest(name.removeprefix(PREFIX), (each.removeprefix(PREFIX) for each in known))
        asked = "" if meant is None else f"; did you mean {PREFIX}{meant}?"
        said.append(f"{name} is no setting, and changes nothing{asked}")
    return said


def _names(settings: Any, prefix: str) -> list[str]:
    names = []
    for each in _fields(settings):
        name, present = f"{prefix}{each.name.upper()}", getattr(settings, each.name)
        names += _names(present, f"{name}_") if is_dataclass(present) else [name]
    return names


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"the settings file is not TOML: {error}") from None


def _from_table(settings: T, table: Mapping[str, Any], where: str) -> T:
    names = {each.name: each for each in _fields(settings)}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in names:
            raise Invalid(f"{where}{key}: {_unknown(key, names)}")
        present = getattr(settings, name)
        if is_dataclass(present):
            if not isinstance(value, Mapping):
                raise Invalid(f"{where}{key}: expected a table")
            settings = _replaced(settings, name, _from_table(present, value, f"{where}{key}."))
        else:
            settings = _with(settings, [name], value, f"{where}{key}")
    return settings


def _from_environment(settings: T, environment: Mapping[str, str], prefix: str) -> T:
    for each in _fields(settings):
        name = f"{prefix}{each.name.upper()}"
        present = getattr(settings, each.name)
        if is_dataclass(present):
            settings = _replaced(settings, each.name, _from_environment(present, environment, f"{name}_"))
        elif name in environment:
            settings = _with(settings, [each.name], environment[name], name)
    return settings


def _with(settings: T, path: list[str], value: Any, where: str) -> T:
    name, *rest = path
    if rest:
        return _replaced(settings, name, _with(getattr(settings, name), rest, value, where))
    kind = get_type_hints(type(settings))[name]
    try:
        return _replaced(settings, name, _converted(kind, value))
    except (TypeError, ValueError) as error:
        raise Invalid(f"{where}: {error}, got {value!r}") from None


def _converted(kind: Any, value: Any) -> Any:
    if kind == timedelta | None:
        return None if value == FOREVER else parse_span(value)
    if kind is timedelta:
        return _not_negative(parse_span(value))
    if kind is bool:
        return _flag(value)
    if kind in (int, float):
        return _number(kind, value)
    if kind == tuple[str, ...]:
        return _texts(value)
    if get_origin(kind) is Mapping:
        return _tables(value)
    if get_origin(kind) is Literal:
        return _choice(get_args(kind), value)
    return _text(value)


def _at_least_one(*numbers: int) -> None:
    if min(numbers) < 1:
        raise ValueError("expected at least 1")


def _not_negative(value: timedelta) -> timedelta:
    if value < timedelta():
        raise ValueError("expected a time that is not negative")
    return value


def _flag(value: Any) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in known:
        raise ValueError("expected true or false")
    return known[str(value).lower()]


def _number(kind: type[int] | type[float], value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError("expected a number")  # noqa: TRY004 - all refusals here are of one kind
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("expected a number") from None
    if isinstance(value, float) and number != value:
        raise ValueError("expected a whole number")
    if not 0 <= number < float("inf"):
        raise ValueError("expected a number that is not negative")
    return number


def _choice(known: tuple[str, ...], value: Any) -> str:
    if value not in known:
        raise ValueError(f"expected {', '.join(known[:-1])} or {known[-1]}")
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(each.strip() for each in value.split(","))
    if not isinstance(value, list | tuple):
        raise ValueError("expected a list of texts")  # noqa: TRY004 - all refusals here are of one kind
    return tuple(_text(each) for each in value)


def _tables(value: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(each, Mapping) for each in value.values()):
        raise ValueError("expected a table for each, in the file")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")  # noqa: TRY004 - all refusals here are of one kind
    return value


def _unknown(key: str, names: Mapping[str, Any]) -> str:
    return f"there is no such setting{hint(key, [name.replace('_', '-') for name in names])}"


def _fields(settings: Any) -> tuple[Any, ...]:
    return tuple(each for each in fields(settings) if each.metadata != SET_ELSEWHERE)


def _replaced(settings: T, name: str, value: Any) -> T:
    changed: T = replace(settings, **{name: value})  # type: ignore[type-var]
    return changed
