"""The kinds of handlers: built-in kinds and plug-ins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any
from urllib.parse import urlsplit

from forewarn.agent.handling import Handling
from forewarn.core.errors import ForewarnError, Invalid
from forewarn.wire.fields import Readers

ENTRY_POINTS = "forewarn.handlers"
# Each is imported when a config uses it, so that an agent without mail does not load a mail client.
BUILT_IN = ("exec", "webhook", "haproxy", "process", "notify", "log")
# These kinds only notify and do not change the machine.
QUIET = ("notify", "log")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A handler that a table of the config declares; one table may declare several."""

    suffix: str = ""  # of its name
    does: Handling
    remarks: Sequence[str] = ()  # warnings about a valid table


def known() -> list[str]:
    """Return the names of all kinds."""
    return [*BUILT_IN, *(each.name for each in _plug_ins() if each.name not in BUILT_IN)]


def readers_of(kind: str) -> Readers | None:
    """Return the readers of a kind's fields; None for a plug-in, which reads its fields itself."""
    if kind not in BUILT_IN:
        return None
    readers: Readers = _module(kind).READERS
    return readers


def declare(kind: str, options: Mapping[str, Any]) -> list[Declared]:
    """Create the handlers of a table from its fields; raise Invalid if the fields contradict each other."""
    if kind in BUILT_IN:
        declared: list[Declared] = _module(kind).declare(options)
        return declared
    return [Declared(does=_from_plug_in(kind, options))]


def url(value: object) -> str:
    """Read an HTTP URL; errors do not show it, because it may be secret."""
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        sound = parts is not None and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        sound = False
    if not sound:
        raise Invalid("expected a URL that begins with http:// or https://")
    return str(value)


def _module(kind: str) -> Any:
    return import_module(f"forewarn.agent.handlers.{kind}")


def _plug_ins() -> list[EntryPoint]:
    return list(entry_points(group=ENTRY_POINTS))


def _from_plug_in(kind: str, options: Mapping[str, Any]) -> Handling:
    found = next((each for each in _plug_ins() if each.name == kind), None)
    if found is None:
        raise Invalid(f"kind: expected one of {', '.join(known())}, got {kind!r}")
    try:
        made: Handling = found.load()(dict(options))
    except ForewarnError:
        raise
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way
        raise Invalid(f"kind: the plug-in {found.value} refuses the config: {error}") from None
    return made
