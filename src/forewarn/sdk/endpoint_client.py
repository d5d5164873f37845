"""An endpoint, as both clients know it: where it is, and what time it is there."""

from collections.abc import Callable
from datetime import datetime, timedelta

from forewarn.clock import SystemClock
from forewarn.sdk.calls import Conversation
from forewarn.sdk.documents import Event
from forewarn.sdk.transport.addresses import base_url


class Endpoint:
    """What a client has that does not depend on how it waits."""

    def __init__(
        self,
        url: str,
        *,
        api_version: str,
        persistence: float,
        monotonic: Callable[[], float],
    ) -> None:
        self.url = base_url(url)
        self._conversation = Conversation(version=api_version)
        self._persistence = persistence
        self._monotonic = monotonic
        self._clock = SystemClock()

    @property
    def last_answered(self) -> float | None:
        """When the endpoint last answered a poll, on the monotonic clock; None if it never did."""
        return self._conversation.last_answered

    def server_now(self) -> datetime:
        """Return the server's time; this machine's own before the first answer."""
        time = self._conversation.server_time
        return self._clock.now() if time is None else time.now(self._monotonic())

    def seconds_left(self, event: Event) -> float | None:
        """Reckon by the server's time how long until an event may start; None if nobody said."""
        return event.seconds_left(self.server_now())

    def clock_skew(self) -> timedelta | None:
        """Say how far this machine's clock is ahead of the server's; None before the first answer."""
        time = self._conversation.server_time
        return None if time is None else self._clock.now() - time.now(self._monotonic())


def ids_of(events: tuple[Event | str, ...]) -> tuple[str, ...]:
    """Take events, or their ids."""
    return tuple(event.id if isinstance(event, Event) else event for event in events)
