"""Read the agent's config from TOML; errors name the line, the field and the expected value."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from forewarn.agent.agent_log import LogForm, redacted
from forewarn.agent.handlers import kinds
from forewarn.agent.handlers.kinds import url
from forewarn.agent.setup.config_text import ExternalValues, KeyPath, line_of, looks_secret
from forewarn.agent.setup.handler import Handler, OnFailure, OnRestart, RecoverAt
from forewarn.agent.verdicts import ApprovePolicy, Approver, HandlerFilter
from forewarn.core.basic_types import HINTS, EventType, Source
from forewarn.core.errors import Invalid
from forewarn.core.toml_text import parse_toml
from forewarn.sdk.documents import NEWEST_VERSION, PREVIEW_VERSION
from forewarn.sdk.guest_errors import NoEndpoint
from forewarn.sdk.transport.endpoint_urls import base_url
from forewarn.wire import fields
from forewarn.wire.fields import Reader, Readers
from forewarn.wire.texts import shown

AUTO = "auto"
# Longer than any notice except that of degraded hardware. A longer timeout is probably a mistake.
LONGEST_TIMEOUT = timedelta(days=1)
SHORTEST_TIMEOUT = timedelta(seconds=1)
LONGEST_NOTICE = timedelta(days=366)
# The machine does no work during the settle time after every event.
LONGEST_SETTLE = timedelta(minutes=10)
MOST_PORTS = 65535
_TOP: Readers = {
    "agent": partial(fields.table, written="[agent]"),
    "handlers": partial(fields.sequence, written="[[handlers]] before each handler"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The table `[agent]`."""

    endpoint: Sequence[str] = ()  # empty: discover the endpoint
    machine: str | None = None  # None: from instance metadata
    journal: Path = Path("agent.journal")
    approve: ApprovePolicy = ApprovePolicy.WHEN_READY
    approver: Approver = Approver.SELF
    approve_unknown: bool = False  # approve events of unknown types
    recover_at: RecoverAt = RecoverAt.BOOT  # the default of handlers
    settle: float = 5.0  # seconds after which a missing event counts as over
    api_version: str = NEWEST_VERSION
    listen: tuple[str, int] | None = None
    log: LogForm = LogForm.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole config."""

    agent: AgentSettings
    handlers: Sequence[Handler] = ()
    remarks: Sequence[str] = ()  # warnings about a valid config
    secrets: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()  # of the environment, named by ${env:}

    def handler(self, name: str) -> Handler | None:
        """Find a handler by its name."""
        return next((handler for handler in self.handlers if handler.name == name), None)

    def holding(self, failed: Collection[str]) -> list[str]:
        """Return the failed handlers that prevent the approval of their event."""
        if self.agent.approve is ApprovePolicy.NEVER:
            return []  # the policy prevents the approval anyway
        return [
            each.name for each in self.handlers if each.name in failed and each.on_failure is OnFailure.HOLD
        ]


def load(path: Path) -> Config:
    """Read a config file."""
    config = parse(_text_of(path), name=str(path), environment=os.environ)
    return replace(config, agent=_with_absolute_journal(path, config.agent))


def load_settings(path: Path) -> AgentSettings:
    """Read the table `[agent]` alone, without the secrets of handlers."""
    text, name = _text_of(path), str(path)
    return _with_absolute_journal(path, _ConfigReader(text, name, {}).settings(parse_toml(text, name=name)))


def _with_absolute_journal(path: Path, settings: AgentSettings) -> AgentSettings:
    """Resolve the journal's path relative to the config file."""
    return replace(settings, journal=path.absolute().parent / settings.journal)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Invalid(
            f"{path} cannot be read: {why}\n"
            "Give the agent's config with --config, or create one with `forewarn agent init`."
        ) from None


def parse(text: str, *, name: str = "config", environment: Mapping[str, str]) -> Config:
    """Read a config's text."""
    return _ConfigReader(text, name, environment).config(parse_toml(text, name=name))


def address(value: object) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, _, port = str(value).rpartition(":") if isinstance(value, str) else ("", "", "")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > MOST_PORTS:
        raise Invalid(f"expected HOST:PORT, such as 127.0.0.1:8171, got {shown(value)}")
    return host.strip("[]"), int(port)


def _endpoint(value: object) -> str:
    """Read the URL of a metadata endpoint: scheme, host and port only."""
    try:
        found = base_url(url(value))
    except NoEndpoint as error:
        raise Invalid(str(error)) from None
    if urlsplit(found).path:
        raise Invalid(f"expected http://HOST or http://HOST:PORT, without a path, got {shown(value)}")
    return found


def endpoints(value: object) -> tuple[str, ...]:
    """Read the URLs of the metadata endpoint; none for "auto"."""
    if value == AUTO:
        return ()
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found:
        raise Invalid(f'expected "auto", a URL or a list of URLs, got {shown(value)}')
    return tuple(_endpoint(each) for each in found)


def machine(value: object) -> str | None:
    """Read the name of this machine; None for "auto"."""
    return None if value == AUTO else fields.name(value)


def _journal(value: object) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise Invalid(f"expected the path of a file, got {shown(value)}")
    return Path(value)


def _some(reader: Reader, what: str) -> Reader:
    """Return a reader of non-empty lists."""

    def several(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise Invalid(f"expected a list of {what}, got {shown(value)}")
        return tuple(reader(each) for each in value)

    return several


def _seconds(least: timedelta, most: timedelta) -> Reader:
    span = fields.span(least, most)
    return lambda value: span(value).total_seconds()


_AGENT: Readers = {
    "endpoint": endpoints,
    "machine": machine,
    "journal": _journal,
    "approve": fields.choice(list(ApprovePolicy)),
    "approver": fields.choice(list(Approver)),
    "approve_unknown": fields.flag,
    "recover_at": fields.choice(list(RecoverAt)),
    "settle": _seconds(timedelta(), LONGEST_SETTLE),
    "api_version": fields.choice((NEWEST_VERSION, PREVIEW_VERSION)),
    "listen": fields.optional(address),
    "log": fields.choice(list(LogForm)),
}
_WHEN: Readers = {
    "types": _some(fields.choice(list(EventType)), "event types"),
    "sources": _some(fields.choice(list(Source)), "sources"),
    **{
        name: _seconds(timedelta(), LONGEST_NOTICE)
        for name in ("min_duration", "max_duration", "min_seconds_left", "max_seconds_left")
    },
}
_HANDLER: Readers = {
    "name": fields.name,
    "kind": fields.name,
    "timeout": _seconds(SHORTEST_TIMEOUT, LONGEST_TIMEOUT),
    "retry": _seconds(SHORTEST_TIMEOUT, LONGEST_TIMEOUT),
    "on_failure": fields.choice(list(OnFailure)),
    "on_restart": fields.choice(list(OnRestart)),
    "recover_at": fields.choice(list(RecoverAt)),
    "drains": fields.flag,
}


class _ConfigReader:
    """Reads one config; errors name the line."""

    def __init__(self, text: str, name: str, environment: Mapping[str, str]) -> None:
        self._text = text
        self._name = name
        self._external = ExternalValues(environment)
        self._remarks: list[str] = []
        self._secret_fields: set[KeyPath] = set()

    def settings(self, whole: Mapping[str, object]) -> AgentSettings:
        top = self._fields(whole, _TOP, (), "")
        if not top:
            # The file may be incomplete, and an empty config would approve every event.
            raise Invalid(f"{self._name} is not a config: it has neither [agent] nor [[handlers]]")
        return AgentSettings(**self._fields(top.get("agent", {}), _AGENT, ("agent",), "agent."))

    def config(self, whole: Mapping[str, object]) -> Config:
        agent = self.settings(whole)
        top = self._fields(whole, _TOP, (), "")
        handlers: list[Handler] = []
        for index, table in enumerate(top.get("handlers", ())):
            if not isinstance(table, Mapping):
                raise self._at(("handlers",), f"handlers[{index}]: expected a table, such as [[handlers]]")
            handlers += self._handlers(table, index, agent, {handler.name for handler in handlers})
        if not handlers and agent.approve is not ApprovePolicy.NEVER:
            self._remarks.append(
                "there are no handlers: the agent approves events at once, without preparation"
            )
        if agent.api_version != PREVIEW_VERSION:
            self._remarks += [
                f'{handler.name}: the agent sees a {hint} only with `api-version = "{PREVIEW_VERSION}"`'
                for handler in handlers
                for hint in sorted(HINTS.intersection(handler.when.types or ()))
            ]
        return Config(
            agent=agent,
            handlers=tuple(handlers),
            remarks=tuple(redacted(remark, self._external.secrets) for remark in self._remarks),
            secrets=frozenset(self._external.secrets),
            variables=frozenset(self._external.variables),
        )

    def _handlers(
        self, table: Mapping[str, object], index: int, agent: AgentSettings, taken: set[str]
    ) -> list[Handler]:
        path: KeyPath = ("handlers", index)
        name = table.get("name")
        where = f"handlers[{index}]{f' {shown(name)}' if name else ''}: "
        for needed in ("name", "kind"):
            if needed not in table:
                raise self._at(path, f"{where}{needed}: it is missing")
        quiet = table["kind"] in kinds.QUIET
        common = {
            "drains": not quiet,
            # After the restart, the event may not be over yet.
            "recover_at": RecoverAt.EVENT_END if quiet else agent.recover_at,
            **self._common(table, path, where),
        }
        own = {key: value for key, value in table.items() if key.replace("-", "_") not in {*_HANDLER, *_WHEN}}
        try:
            declared = self._declared(common["kind"], own, path, where)
        except Invalid as refusal:
            raise self._at(path, str(refusal), prefix=where) from None
        when = HandlerFilter(**{key: common.pop(key) for key in list(common) if key in _WHEN})
        if why := when.contradiction():
            raise self._at(path, f"{where}{why}")
        name = common.pop("name")
        self._remarks += [f"{name}: {remark}" for each in declared for remark in each.remarks]
        made = [Handler(**common, name=name + each.suffix, when=when, does=each.does) for each in declared]
        if twice := next((each.name for each in made if each.name in taken), None):
            raise self._at((*path, "name"), f"{where}name: another handler already has the name {twice!r}")
        return made

    def _common(self, table: Mapping[str, object], path: KeyPath, where: str) -> dict[str, Any]:
        known = {**_HANDLER, **_WHEN}
        common = {key: value for key, value in table.items() if key.replace("-", "_") in known}
        return self._fields(common, known, path, where)

    def _declared(self, kind: str, own: Mapping[str, Any], path: KeyPath, where: str) -> list[kinds.Declared]:
        if kind not in kinds.known():
            raise self._at(
                (*path, "kind"), f"{where}kind: expected one of {', '.join(kinds.known())}, got {kind!r}"
            )
        resolved = {key: self._resolved(key, value, (*path, key), where) for key, value in own.items()}
        self._remarks += self._unmarked(resolved.get("environment"), where)
        readers = kinds.readers_of(kind)
        if readers is None:
            return kinds.declare(kind, resolved)
        # The common fields are read already. They are included for "did you mean" hints.
        known = {**{name: _HANDLER.get(name, fields.text) for name in (*_HANDLER, *_WHEN)}, **readers}
        return kinds.declare(kind, self._fields(resolved, known, path, where))

    def _fields(
        self, table: Mapping[str, Any], readers: Readers, path: KeyPath, where: str
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in table.items():
            try:
                found = fields.read({key: value}, readers, where)
            except Invalid as refusal:
                # Do not show the value of a secret field: a shortened secret could not be redacted.
                is_secret = (*path, key) in self._secret_fields
                message = str(refusal).partition(", got ")[0] if is_secret else str(refusal)
                raise self._at((*path, key), message) from None
            if not found.keys().isdisjoint(values):
                raise self._at((*path, key), f"{where}{key}: it is given twice, once with - and once with _")
            values |= found
        return values

    def _resolved(self, key: str, value: object, path: KeyPath, where: str) -> object:
        try:
            resolved, is_secret = self._external.resolved(key, value)
        except Invalid as refusal:
            raise self._at(path, f"{where}{key}: {refusal}") from None
        if is_secret:
            self._secret_fields.add(path)
        return resolved

    def _unmarked(self, environment: object, where: str) -> Iterator[str]:
        """Yield warnings about variables that look like secrets and are not marked as such."""
        for name, value in environment.items() if isinstance(environment, Mapping) else ():
            marked = not isinstance(value, str) or redacted(value, self._external.secrets) != value
            if value and not marked and looks_secret(name):
                yield (
                    f"{where}environment: {name} looks like a secret, and the log would show it if a program"
                    " prints it: move it to `secrets`"
                )

    def _at(self, path: KeyPath, refusal: str, *, prefix: str = "") -> Invalid:
        if refusal.startswith(f"{self._name} line "):
            return Invalid(refusal)
        line = line_of(self._text, path)
        message = refusal if refusal.startswith(prefix) else f"{prefix}{refusal}"
        message = redacted(message, self._external.secrets)
        return Invalid(f"{self._name} line {line}: {message}" if line else f"{self._name}: {message}")
