"""The base of both clients: the endpoint, the server's time, and calls as steps of a driver."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from forewarn.clock import SystemClock, monotonic
from forewarn.sdk.discovery import Discovery, Surroundings, discover, surroundings
from forewarn.sdk.documents import NEWEST_VERSION, Document, Event
from forewarn.sdk.guest_calls import PERSISTENCE_SECONDS, Call, GuestCalls
from forewarn.sdk.instances import Instance
from forewarn.sdk.transport.connection_reuse import EndpointConnections, Pause, Steps
from forewarn.sdk.transport.endpoint_urls import base_url
from forewarn.sdk.transport.exchange import GuestRequest, NoAnswer, Reply

Result = TypeVar("Result")


class EndpointClient:
    """The part of a client that does not depend on threads or asyncio."""

    def __init__(
        self,
        url: str,
        *,
        api_version: str = NEWEST_VERSION,
        persistence: float = PERSISTENCE_SECONDS,
        timeout: float | None = None,
        pause: Callable[[float], Any] | None = None,
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Take the URL of the endpoint, and for how many seconds a call is retried.

        `timeout` is the longest wait for an answer in seconds, not counting the time for which the server
        holds a request. By default, the first answer may take as long as Azure needs to enable the feature.
        `pause` waits between requests and `monotonic` reads the clock; tests replace both.
        """
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout: expected more than 0 seconds, or None, got {timeout!r}")
        self.url = base_url(url)
        self._calls = GuestCalls(version=api_version, timeout=timeout)
        self._persistence = persistence
        self._monotonic = monotonic
        self._pause = pause or self._sleep
        self._closing = threading.Event()  # ends the pause of a blocking client
        self._clock = SystemClock()
        self._connections = EndpointConnections(self.url, monotonic=monotonic)  # never through a proxy

    @property
    def last_answered(self) -> float | None:
        """When the endpoint last answered a poll, on the monotonic clock; None if it never has."""
        return self._calls.last_answered

    def server_now(self) -> datetime:
        """Return the time of the server; before the first answer, the time of this machine."""
        time = self._calls.server_time
        return self._clock.now() if time is None else time.now(self._monotonic())

    def seconds_left(self, event: Event) -> float | None:
        """Return the seconds until an event may start, by the time of the server; None if not known."""
        return event.seconds_left(self.server_now())

    def clock_skew(self) -> timedelta | None:
        """Return how far the clock of this machine is ahead of the server; None before the first answer."""
        time = self._calls.server_time
        return None if time is None else self._clock.now() - time.now(self._monotonic())

    def _sleep(self, seconds: float) -> Any:
        raise NotImplementedError

    def _look(self, around: Surroundings | None) -> Steps[Discovery]:
        seen = surroundings if around is None else lambda: around
        now = self._monotonic()
        return self._steps(discover(self._calls, seen, now=now, within=self._persistence))

    def _events(self) -> Steps[Document]:
        return self._steps(self._calls.events(now=self._monotonic(), within=self._persistence))

    def _approve(self, events: tuple[Event | str, ...]) -> Steps[None]:
        if not events:
            raise ValueError("approve: expected at least one event, or its id")
        ids = tuple(event.id if isinstance(event, Event) else event for event in events)
        return self._steps(self._calls.approve(ids, now=self._monotonic(), within=self._persistence))

    def _instance(self) -> Steps[Instance]:
        return self._steps(self._calls.instance(within=self._persistence))

    def _steps(self, call: Call[Result]) -> Steps[Result]:
        """Send the requests of a call, each after its pause."""
        try:
            request = next(call)
            while True:
                if request.after:
                    yield Pause(request.after)
                request = call.send((yield from self._send(request)))
        except StopIteration as end:
            result: Result = end.value
            return result

    def _send(self, request: GuestRequest) -> Steps[Reply]:
        sent = self._monotonic()
        reply = yield from self._connections.ask(request)
        if isinstance(reply, NoAnswer):
            reply = replace(reply, why=f"no metadata endpoint answers at {self.url}: {reply.why}")
        return replace(reply, sent=sent, received=self._monotonic())
