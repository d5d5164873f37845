"""Limits of each caller: request rate, concurrent requests, open streams and body sizes.

A caller is its token or, without one, its address. The load of one caller does not reduce the limits of
others. Time is real and monotonic, whatever clock the server uses.
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

# While no token exists, all callers are operators and their scripts on the same computer.
LOCAL_FACTOR = 10
# Sums of intervals have rounding errors, which must not refuse the last request of a burst.
ROUNDING = 1e-9
# Seconds after which another request has probably ended, or a stream was closed.
RETRY_CALL, RETRY_STREAM = 1, 10
# Further addresses share one allowance. Each known address takes some 200 bytes.
MOST_CALLERS = 10_000
# After this time without a refusal, the next one is logged again.
CALM_SECONDS = 60.0


class CallLimit(StrEnum):
    """The limit that a request exceeded."""

    RATE = "rate"
    CALLS = "calls"
    STREAMS = "streams"
    BODY = "body"  # the size of one body
    BODIES = "bodies"  # the total size of all bodies that are being read


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerLimits:
    """The limits of one caller. 0: no limit."""

    rate: float = 100.0  # requests a second, with a burst of twice as many
    calls: int = 32  # concurrent requests
    streams: int = 20  # open streams

    @property
    def interval(self) -> float:
        """Seconds between requests at the full rate."""
        return 1 / self.rate if self.rate > 0 else 0.0

    @property
    def slack(self) -> float:
        """Seconds that a burst may be ahead of the rate."""
        return (max(1.0, 2 * self.rate) - 1) * self.interval + ROUNDING

    def times(self, factor: int) -> "CallerLimits":
        """Return limits multiplied by a factor."""
        return CallerLimits(rate=self.rate * factor, calls=self.calls * factor, streams=self.streams * factor)


class LimitedCaller(NamedTuple):
    """A caller, as limits distinguish callers."""

    kind: str  # token or address
    name: str
    is_local: bool = False  # it needs no token, because none exists

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}" if self.kind == "token" else f"{self.kind} {self.name}"


OTHERS = LimitedCaller("address", "all others")


def caller_at(peer: str, *, is_local: bool = False) -> LimitedCaller:
    """Return the caller at an address. All addresses of an IPv6 /64 network are one caller."""
    try:
        parsed = ip_address(peer.partition("%")[0])
    except ValueError:
        return LimitedCaller("address", peer, is_local)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return LimitedCaller("address", str(ip_network((parsed, 64), strict=False)), is_local)
    return LimitedCaller("address", str(getattr(parsed, "ipv4_mapped", None) or parsed), is_local)


class LimitExceeded(HTTPException):
    """A caller exceeds a limit. It can try again later."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(429, message, {"Retry-After": str(retry_after)})


class _Usage:
    """The usage of one caller."""

    __slots__ = ("due", "open")

    def __init__(self) -> None:
        self.due = 0.0  # when the caller has its whole burst again
        self.open = {CallLimit.CALLS: 0, CallLimit.STREAMS: 0}


class CallRefusals:
    """Counts refusals by limit, and logs the first one after a calm time."""

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
    """The usage of each caller. Only the event loop's thread uses it."""

    def __init__(
        self, limits: CallerLimits, refusals: CallRefusals, *, monotonic: Callable[[], float] = monotonic
    ) -> None:
        self._limits = {False: limits, True: limits.times(LOCAL_FACTOR)}
        self._refusals = refusals
        self._monotonic = monotonic
        self._usage: dict[LimitedCaller, _Usage] = {}

    def __len__(self) -> int:
        return len(self._usage)

    def admit(self, caller: LimitedCaller) -> None:
        """Count a request against the caller's rate; LimitExceeded if the rate is too high."""
        limits, now = self._limits[caller.is_local], self._monotonic()
        usage = self._of(caller, now)
        due = max(usage.due, now)
        early = due - now - limits.slack
        if early > 0:
            seconds = math.ceil(early)
            exceeded = f"rate of {caller} is exceeded ({limits.rate:g} a second)"
            raise self._refused(CallLimit.RATE, exceeded, retry_after=seconds)
        usage.due = due + limits.interval

    @contextmanager
    def call(self, caller: LimitedCaller, *, is_stream: bool = False) -> Iterator[None]:
        """Count a request until its response ends; LimitExceeded if the caller has too many."""
        self.admit(caller)
        limits, usage = self._limits[caller.is_local], self._of(caller, self._monotonic())
        limit = CallLimit.STREAMS if is_stream else CallLimit.CALLS
        most = limits.streams if is_stream else limits.calls
        if 0 < most <= usage.open[limit]:
            what, retry_after = ("open streams", RETRY_STREAM) if is_stream else ("open requests", RETRY_CALL)
            exceeded = f"{caller} has {most} {what}, the maximum"
            raise self._refused(limit, exceeded, retry_after=retry_after)
        usage.open[limit] += 1
        try:
            yield
        finally:
            usage.open[limit] -= 1

    def _refused(self, limit: CallLimit, exceeded: str, *, retry_after: int) -> LimitExceeded:
        self._refusals.note(limit, exceeded)
        advice = f"try again in {retry_after} s; [operator] {limit} raises it"
        return LimitExceeded(f"{exceeded}: {advice}", retry_after=retry_after)

    def _of(self, caller: LimitedCaller, now: float) -> _Usage:
        usage = self._usage.get(caller)
        if usage is not None:
            return usage
        if len(self._usage) >= MOST_CALLERS:
            self._usage = {
                each: known
                for each, known in self._usage.items()
                if known.due > now or any(known.open.values())
            }
        if len(self._usage) >= MOST_CALLERS and caller.kind == "address":
            caller = OTHERS
        return self._usage.setdefault(caller, _Usage())


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """Maximum body sizes in bytes."""

    usual: int = MIB
    # The declaration of 100,000 machines must fit.
    fleet: int = 64 * MIB
    # These first bytes of each body do not count towards the totals, so that an order always fits.
    free: int = 64 * 1024
    # Total of all bodies that are being read: of users of projects, and of callers that see the whole fleet.
    all_of_projects: int = 16 * MIB
    all_of_fleet: int = 64 * MIB


class BodyBudget:
    """The memory for bodies, which each request holds until its response ends."""

    def __init__(self, limits: BodyLimits, refusals: CallRefusals) -> None:
        self.limits = limits
        self._refusals = refusals
        self._held = {True: 0, False: 0}  # key: whether the caller belongs to a project

    def too_large(self, limit: int) -> HTTPException:
        """Count and return the refusal of a body."""
        message = f"the body is larger than {limit} bytes"
        self._refusals.note(CallLimit.BODY, message)
        return HTTPException(413, message)

    @contextmanager
    def reading(self, limit: int, *, of_project: bool) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes the size of each chunk of a body, and refuses too large ones."""
        size = held = 0
        most = self.limits.all_of_projects if of_project else self.limits.all_of_fleet

        def take(chunk: int) -> None:
            nonlocal size, held
            size += chunk
            if size > limit:
                raise self.too_large(limit)
            more = max(size - self.limits.free, 0) - held
            if self._held[of_project] + more > most:
                message = f"the bodies of all current requests exceed {most} bytes, the maximum"
                self._refusals.note(CallLimit.BODIES, message)
                raise LimitExceeded(f"{message}: try again in {RETRY_CALL} s", retry_after=RETRY_CALL)
            held += more
            self._held[of_project] += more

        try:
            yield take
        finally:
            self._held[of_project] -= held
