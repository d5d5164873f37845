"""Messages between the server and the process of a driver: a length, and a pickled tuple.

Both ends are the same version of forewarn. The server trusts the other end less than that end trusts the
server: C code may have overwritten its memory. So the server reads only the classes that answers are made of.
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

# A message: its kind, and what belongs to it. `driver_process.py` and `child.py` match each other's.
Message: TypeAlias = tuple[Any, ...]

# The inventory of a cloud with 100,000 machines takes a quarter of it.
LONGEST = 64 * 1024 * 1024

_LENGTH = struct.Struct("!I")
_CHUNK = 256 * 1024

# What a driver answers with. What these are made of is known by their fields.
_ANSWERS = (driver.Begun, driver.Checked, driver.CancelAnswer, found_fleet.FoundFleet)
# A moment of the zone that all moments have; how it is pickled is not seen in a field's type.
_MADE_OF = (datetime, timedelta, timezone)


class MessageTooLong(ValueError):
    """A message that is longer than any may be."""


def packed(value: object) -> bytes:
    """Pickle a value; whatever cannot be pickled raises."""
    return pickle.dumps(value, protocol=5)


def framed(message: Message) -> bytes:
    """Return a message as it is sent; MessageTooLong if it may not be."""
    body = packed(message)
    if len(body) > LONGEST:
        raise MessageTooLong(f"{len(body)} bytes, more than {LONGEST}")
    return _LENGTH.pack(len(body)) + body


class Received:
    """The messages that come from the other end; what has come of one is kept while a read times out."""

    def __init__(self, connection: socket.socket, *, known: Iterable[type] | None = ()) -> None:
        """Take the classes that may come; None: all, from an end that is trusted."""
        self._connection = connection
        self._known = known
        self._buffer = bytearray()

    def next(self) -> Message | None:
        """Return the next message; None at the end. BlockingIOError if none has come in time."""
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
        return _checked(message)

    def _filled(self, length: int) -> bool:
        """Read until there are so many bytes; return whether they have come before the end."""
        while len(self._buffer) < length:
            chunk = self._connection.recv(_CHUNK)
            if not chunk:
                return False
            self._buffer += chunk
        return True


def read_answer(body: object) -> Any:
    """Return the value of an answer; UnpicklingError names the class that no answer has."""
    if not isinstance(body, bytes):
        raise pickle.UnpicklingError("an answer is bytes")
    return _loaded(body, _answer_classes())


def read_refusal(kind: str, text: str) -> ForewarnError:
    """Return the error by which a driver has refused a call."""
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, ForewarnError):
        return known(text)
    return ForewarnError(text)


@cache
def _answer_classes() -> frozenset[type]:
    """Return the classes of answers, and those of their fields."""
    known: set[type] = set(_MADE_OF)

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


def _checked(message: object) -> Message:
    if not isinstance(message, tuple) or not message or not isinstance(message[0], str):
        raise pickle.UnpicklingError("a message is a tuple that begins with its kind")
    return message


def _loaded(body: bytes, known: Iterable[type]) -> Any:
    try:
        return _Reader(body, known).load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # pickle raises whatever it comes upon
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error


class _Reader(pickle.Unpickler):
    """Reads values of known classes, and of no others."""

    def __init__(self, body: bytes, known: Iterable[type]) -> None:
        super().__init__(io.BytesIO(body))
        self._known = {(each.__module__, each.__qualname__): each for each in known}

    def find_class(self, module: str, name: str, /) -> type:
        """Return a known class; pickle asks for everything by this that is not a number, text or list."""
        found = self._known.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of an answer")
        return found
