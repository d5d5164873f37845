"""The kinds of handlers there are: those that come with forewarn, and plug-ins."""

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
# Each loaded when a config asks for it: an agent that sends no mail needs no mail client in its memory.
BUILT_IN = ("exec", "webhook", "haproxy", "process", "notify", "log")
# These only notify: a machine whose event was logged can continue to work.
QUIET = ("notify", "log")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A handler that a table of the config stands for; one table may stand for several."""

    suffix: str = ""  # of its name
    does: Handling
    remarks: Sequence[str] = ()  # what is to be known about the table, though it is sound


def known() -> list[str]:
    """Return the names of all kinds."""
    return [*BUILT_IN, *(each.name for each in _plug_ins() if each.name not in BUILT_IN)]


def readers_of(kind: str) -> Readers | None:
    """Return how the fields of a kind are read; None for a plug-in, which reads them itself."""
    if kind not in BUILT_IN:
        return None
    readers: Readers = _module(kind).READERS
    return readers


def declare(kind: str, options: Mapping[str, Any]) -> list[Declared]:
    """Make what a table stands for, of its fields as they were read; Invalid if they do not go together."""
    if kind in BUILT_IN:
        made: list[Declared] = _module(kind).declare(options)
        return made
    return [Declared(does=_plugged(kind, options))]


def url(value: object) -> str:
    """Read the URL of something that speaks HTTP, without showing it: it may be a secret."""
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        sound = parts is not None and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port beyond all ports, or brackets that do not close
        sound = False
    if not sound:
        raise Invalid("expected a URL that begins with http:// or https://")
    return str(value)


def _module(kind: str) -> Any:
    return import_module(f"forewarn.agent.handlers.{kind}")


def _plug_ins() -> list[EntryPoint]:
    return list(entry_points(group=ENTRY_POINTS))


def _plugged(kind: str, options: Mapping[str, Any]) -> Handling:
    found = next((each for each in _plug_ins() if each.name == kind), None)
    if found is None:
        raise Invalid(f"kind: expected one of {', '.join(known())}, got {kind!r}")
    try:
        made: Handling = found.load()(dict(options))
    except ForewarnError:
        raise
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and its author is not here
        raise Invalid(f"kind: the plug-in {found.value} refuses this: {error}") from None
    return made
