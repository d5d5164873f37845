"""Messages between the server and the process of a driver: a length and a pickled tuple.

Both ends run the same version of forewarn. The process trusts the server. The server does not trust the
process, whose memory C code may have overwritten. So the server unpickles only the classes of answers.
"""

import io
import pickle
import socket
import struct
from collections.abc import Iterable
from dataclasses import is_dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import cache
from typing import Any, TypeAlias, get_args, get_type_hints

from forewarn.control import driver
from forewarn.core import errors
from forewarn.core.errors import ForewarnError
from forewarn.core.model import found_fleet

# A message: its kind and its arguments. `driver_process.py` and `child.py` must match.
Message: TypeAlias = tuple[Any, ...]

# The inventory of a cloud with 100,000 machines takes a quarter of this limit.
LONGEST = 64 * 1024 * 1024

_LENGTH = struct.Struct("!I")
_CHUNK = 256 * 1024

# The types of answers. The allowed classes follow from the types of their fields.
_ANSWERS = (driver.Begun, driver.Checked, driver.CancelAnswer, found_fleet.FoundFleet)
# A pickled datetime contains a timezone, which the type of a field does not show.
_VALUE_CLASSES = (datetime, timedelta, timezone)


class MessageTooLong(ValueError):
    """A message is longer than the limit."""


def packed(value: object) -> bytes:
    """Pickle a value."""
    return pickle.dumps(value, protocol=5)


def framed(message: Message) -> bytes:
    """Return a message with its length; raise MessageTooLong above the limit."""
    body = packed(message)
    if len(body) > LONGEST:
        raise MessageTooLong(f"{len(body)} bytes, more than {LONGEST}")
    return _LENGTH.pack(len(body)) + body


class Received:
    """Reads messages from a socket; a partial message survives a timeout."""

    def __init__(self, connection: socket.socket, *, known: Iterable[type] | None = ()) -> None:
        """Take the allowed classes; None allows all, for a trusted sender."""
        self._connection = connection
        self._known = known
        self._buffer = bytearray()

    def next(self) -> Message | None:
        """Return the next message, or None at the end; raise BlockingIOError on timeout."""
        if not self._filled(_LENGTH.size):
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > LONGEST:
            raise MessageTooLong(f"{length} bytes, more than {LONGEST}")
        whole = _LENGTH.size + length
        if not self._filled(whole):
            return None
        body = bytes(self._buffer[_LENGTH.size : whole])
        del self._buffer[:whole]
        message = pickle.loads(body) if self._known is None else _loaded(body, self._known)  # noqa: S301 - from the server
        if not isinstance(message, tuple) or not message or not isinstance(message[0], str):
            raise pickle.UnpicklingError("expected a message: a tuple that begins with its kind")
        return message

    def _filled(self, length: int) -> bool:
        """Read until the buffer has this many bytes; return False at the end."""
        while len(self._buffer) < length:
            chunk = self._connection.recv(_CHUNK)
            if not chunk:
                return False
            self._buffer += chunk
        return True


def read_answer(body: object) -> Any:
    """Unpickle an answer; raise UnpicklingError with the name of a class that is not allowed."""
    if not isinstance(body, bytes):
        raise pickle.UnpicklingError("expected an answer as bytes")
    return _loaded(body, _answer_classes())


def read_refusal(kind: str, text: str) -> ForewarnError:
    """Return the error that a driver raised to refuse a call."""
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, ForewarnError):
        return known(text)
    return ForewarnError(text)


@cache
def _answer_classes() -> frozenset[type]:
    """Return the classes of answers and of their fields."""
    known: set[type] = set(_VALUE_CLASSES)

    def add(kind: Any) -> None:
        for each in get_args(kind):
            add(each)
        if not isinstance(kind, type) or kind in known:
            return
        if is_dataclass(kind):
            known.add(kind)
            for each in get_type_hints(kind).values():
                add(each)
        elif issubclass(kind, Enum):
            known.add(kind)

    for answer in _ANSWERS:
        add(answer)
    return frozenset(known)


def _loaded(body: bytes, known: Iterable[type]) -> Any:
    try:
        return _AnswerUnpickler(body, known).load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # pickle may raise anything for bad bytes
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error


class _AnswerUnpickler(pickle.Unpickler):
    """Unpickles values of known classes only."""

    def __init__(self, body: bytes, known: Iterable[type]) -> None:
        super().__init__(io.BytesIO(body))
        self._known = {(each.__module__, each.__qualname__): each for each in known}

    def find_class(self, module: str, name: str, /) -> type:
        """Return a known class; pickle looks up every class and function here."""
        found = self._known.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed in an answer")
        return found
