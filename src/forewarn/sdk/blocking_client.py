"""The client for programs that use threads."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from forewarn.clock import monotonic
from forewarn.sdk.discovery import Discovery, Surroundings, surroundings
from forewarn.sdk.documents import Document, Event
from forewarn.sdk.endpoint_client import EndpointClient
from forewarn.sdk.guest_calls import PERSISTENCE_SECONDS, WAIT_SECONDS, DocumentWatch, OnTrouble
from forewarn.sdk.guest_errors import Closed
from forewarn.sdk.instances import Instance
from forewarn.sdk.transport import blocking_driver
from forewarn.sdk.transport.connection_reuse import Steps

Result = TypeVar("Result")


class GuestClient(EndpointClient):
    """A client of the metadata endpoint of this machine.

    It retries temporary errors (404, 410, 429, 5xx, no answer, an unreadable answer) with growing pauses, and
    raises `EndpointUnavailable` if they last too long. It raises `EndpointRefused` for permanent errors.
    Threads may share a client.
    """

    @classmethod
    def discover(
        cls,
        *,
        persistence: float = PERSISTENCE_SECONDS,
        timeout: float | None = None,
        around: Surroundings | None = None,
        pause: Callable[[float], object] | None = None,
        monotonic: Callable[[], float] = monotonic,
    ) -> "GuestClient":
        """Find the endpoint of this machine.

        It is named by FOREWARN_ENDPOINT or SCHEDULEDEVENTSIP, or it is 169.254.169.254 if that answers, or it
        is in the DHCP lease. Without any, this method repeats the search with growing pauses for
        `persistence` seconds, and then raises `NoEndpoint`, which lists the places.
        """
        usual = (around or surroundings()).default_url
        connect = partial(cls, persistence=persistence, timeout=timeout, pause=pause, monotonic=monotonic)
        with connect(usual) as scout:
            found = scout.look(around)
        return connect(found.url)

    def look(self, around: Surroundings | None = None) -> Discovery:
        """Look for an endpoint, and return what was found in each place."""
        return self._run(self._look(around))

    def events(self) -> Document:
        """Return the current document."""
        return self._run(self._events())

    def approve(self, *events: Event | str) -> None:
        """Approve events, so that they may start early; returns once the approval is saved."""
        self._run(self._approve(events))

    def watch(self, *, wait: int = WAIT_SECONDS, trouble: OnTrouble | None = None) -> Iterator[Document]:
        """Yield the document now and after each change, until the client is closed.

        An outage of the endpoint does not end the watch: `trouble` is called with the reason when one begins,
        and with None when it is over. Each request asks the server to hold it for up to `wait` seconds until
        the document changes; 0 polls without that.
        """
        documents = DocumentWatch(self._calls, wait=wait, trouble=trouble)
        with contextlib.suppress(Closed):
            while True:
                yield self._run(self._steps(documents.next(now=self._monotonic())))

    def instance(self) -> Instance:
        """Return the instance metadata of this machine."""
        return self._run(self._instance())

    def close(self) -> None:
        """Close all connections, from any thread: open requests raise `Closed`, and a watch ends."""
        self._closing.set()
        self._connections.close()

    def __enter__(self) -> "GuestClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _sleep(self, seconds: float) -> object:
        return self._closing.wait(seconds)

    def _run(self, steps: Steps[Result]) -> Result:
        return blocking_driver.run(steps, pause=self._pause)
