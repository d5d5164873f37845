"""Limits of each caller: how often it calls, and how much it has the service do and hold at once.

A caller is its token or, without one, its address. Whatever one of them asks for, what the others may ask for
is the same. Time is real and monotonic, whatever the service's clock.
"""

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv6Address, ip_address, ip_network
from typing import NamedTuple

from starlette.exceptions import HTTPException

from forewarn.clock import monotonic

log = logging.getLogger(__name__)

MIB = 1024 * 1024

# While there are no tokens, all who call are operators on the same computer, and scripts of theirs.
LOCAL_FACTOR = 10
# Additions of the interval must not turn the last call of a burst into one too many.
ROUNDING = 1e-9
# When a call may have been answered, and when a reader may have gone; in seconds.
RETRY_CALL, RETRY_STREAM = 1, 10
# More addresses than that at once share one allowance; each takes some 200 bytes.
MOST_CALLERS = 10_000
# So long without a refusal, and the next one is logged again.
CALM_SECONDS = 60.0


class CallLimit(StrEnum):
    """What there was too much of."""

    RATE = "rate"
    CALLS = "calls"
    STREAMS = "streams"
    BODY = "body"  # one that is too large
    BODIES = "bodies"  # all that are being read together


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerLimits:
    """What one caller may ask for; 0 is no limit."""

    rate: float = 100.0  # calls a second, with a burst of twice as many
    calls: int = 32  # that are being answered at once
    streams: int = 20  # that are open at once

    @property
    def interval(self) -> float:
        """Seconds between calls that come as often as they may."""
        return 1 / self.rate if self.rate > 0 else 0.0

    @property
    def slack(self) -> float:
        """Seconds that a burst may be ahead of its time."""
        return (max(1.0, 2 * self.rate) - 1) * self.interval + ROUNDING

    def times(self, factor: int) -> "CallerLimits":
        """Return limits that are so many times as high."""
        return CallerLimits(rate=self.rate * factor, calls=self.calls * factor, streams=self.streams * factor)


class Who(NamedTuple):
    """A caller, as its limits know it."""

    kind: str  # token or address
    name: str
    is_local: bool = False  # it needs no token, since there are none

    @property
    def shown(self) -> str:
        """The caller, as a message names it."""
        return f"{self.kind} {self.name!r}" if self.kind == "token" else f"{self.kind} {self.name}"


OTHERS = Who("address", "all others")


def address_of(peer: str, *, is_local: bool = False) -> Who:
    """Return the caller at an address; who has an IPv6 network has all addresses of it."""
    try:
        parsed = ip_address(peer.partition("%")[0])
    except ValueError:
        return Who("address", peer, is_local)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return Who("address", str(ip_network((parsed, 64), strict=False)), is_local)
    return Who("address", str(getattr(parsed, "ipv4_mapped", None) or parsed), is_local)


class LimitExceeded(HTTPException):
    """A caller asks for too much at once; it may ask again."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(429, message, {"Retry-After": str(retry_after)})


class _Taken:
    """What a caller has taken of what it may take."""

    __slots__ = ("calls", "due", "streams")

    def __init__(self) -> None:
        self.due = 0.0  # when it may burst again as if it had never called
        self.calls = self.streams = 0


class CallRefusals:
    """Counts what was refused, by its limit; the first after a calm time is logged."""

    def __init__(self, *, monotonic: Callable[[], float] = monotonic) -> None:
        self.counts = dict.fromkeys(CallLimit, 0)
        self._monotonic = monotonic
        self._last: dict[CallLimit, float] = {}

    def note(self, limit: CallLimit, why: str) -> None:
        """Count a refusal."""
        now = self._monotonic()
        if now - self._last.get(limit, -math.inf) > CALM_SECONDS:
            log.warning("operator requests are refused: %s", why)
        self._last[limit] = now
        self.counts[limit] += 1


class CallerTable:
    """What each caller has taken; lives on one event loop."""

    def __init__(
        self, limits: CallerLimits, refusals: CallRefusals, *, monotonic: Callable[[], float] = monotonic
    ) -> None:
        self._limits = {False: limits, True: limits.times(LOCAL_FACTOR)}
        self._refusals = refusals
        self._monotonic = monotonic
        self._taken: dict[Who, _Taken] = {}

    def __len__(self) -> int:
        return len(self._taken)

    def admit(self, who: Who) -> None:
        """Count a call against the caller's rate; LimitExceeded if it calls too often."""
        limits, now = self._limits[who.is_local], self._monotonic()
        taken = self._of(who, now)
        due = max(taken.due, now)
        early = due - now - limits.slack
        if early > 0:
            seconds = math.ceil(early)
            exceeded = f"rate of {who.shown} is exceeded ({limits.rate:g} a second)"
            raise self._refused(CallLimit.RATE, exceeded, retry_after=seconds)
        taken.due = due + limits.interval

    @contextmanager
    def call(self, who: Who, *, is_stream: bool = False) -> Iterator[None]:
        """Count a call as long as it is being answered; LimitExceeded if the caller has too many."""
        self.admit(who)
        limits, taken = self._limits[who.is_local], self._of(who, self._monotonic())
        if is_stream:
            if 0 < limits.streams <= taken.streams:
                exceeded = f"{who.shown} has {limits.streams} streams open, as many as it may have"
                raise self._refused(CallLimit.STREAMS, exceeded, retry_after=RETRY_STREAM)
            taken.streams += 1
        else:
            if 0 < limits.calls <= taken.calls:
                exceeded = f"{limits.calls} calls of {who.shown} are being answered, as many as may be"
                raise self._refused(CallLimit.CALLS, exceeded, retry_after=RETRY_CALL)
            taken.calls += 1
        try:
            yield
        finally:
            if is_stream:
                taken.streams -= 1
            else:
                taken.calls -= 1

    def _refused(self, limit: CallLimit, exceeded: str, *, retry_after: int) -> LimitExceeded:
        self._refusals.note(limit, exceeded)
        advice = f"try again in {retry_after} s; [operator] {limit} raises it"
        return LimitExceeded(f"{exceeded}: {advice}", retry_after=retry_after)

    def _of(self, who: Who, now: float) -> _Taken:
        taken = self._taken.get(who)
        if taken is not None:
            return taken
        if len(self._taken) >= MOST_CALLERS:
            self._taken = {
                each: known
                for each, known in self._taken.items()
                if known.due > now or known.calls or known.streams
            }
        if len(self._taken) >= MOST_CALLERS and who.kind == "address":
            who = OTHERS
        return self._taken.setdefault(who, _Taken())


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """How large bodies may be, in bytes."""

    usual: int = MIB
    # The declaration of a hundred thousand machines must fit.
    fleet: int = 64 * MIB
    # So much of each body is always read: an order finds room whatever others send.
    free: int = 64 * 1024
    # What is being read at once beyond that: by the people of projects, and by all who see the whole fleet.
    all_of_projects: int = 16 * MIB
    all_of_fleet: int = 64 * MIB


class Bodies:
    """The bodies that are being read, and held until their calls are answered."""

    def __init__(self, limits: BodyLimits, refusals: CallRefusals) -> None:
        self.limits = limits
        self._refusals = refusals
        self._held = {True: 0, False: 0}  # by whether it is of a project

    def too_large(self, limit: int) -> HTTPException:
        """Return the refusal of a body, and count it."""
        message = f"the body is larger than {limit} bytes"
        self._refusals.note(CallLimit.BODY, message)
        return HTTPException(413, message)

    @contextmanager
    def reading(self, limit: int, *, of_project: bool) -> Iterator[Callable[[int], None]]:
        """Give what is called with the size of each piece of a body; it refuses what is too much."""
        size = held = 0
        most = self.limits.all_of_projects if of_project else self.limits.all_of_fleet

        def take(piece: int) -> None:
            nonlocal size, held
            size += piece
            if size > limit:
                raise self.too_large(limit)
            more = max(size - self.limits.free, 0) - held
            if self._held[of_project] + more > most:
                message = f"the bodies that are being read at once have {most} bytes, as many as may be"
                self._refusals.note(CallLimit.BODIES, message)
                raise LimitExceeded(f"{message}: try again in {RETRY_CALL} s", retry_after=RETRY_CALL)
            held += more
            self._held[of_project] += more

        try:
            yield take
        finally:
            self._held[of_project] -= held
