"""The client for programs that block."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from forewarn.clock import monotonic
from forewarn.sdk.discovery import Discovery, Surroundings, surroundings
from forewarn.sdk.documents import NEWEST_VERSION, Document, Event
from forewarn.sdk.endpoint_client import EndpointClient
from forewarn.sdk.guest_calls import PERSISTENCE_SECONDS, WAIT_SECONDS, DocumentWatch, OnTrouble
from forewarn.sdk.guest_errors import Closed
from forewarn.sdk.instances import Instance
from forewarn.sdk.transport import blocking_driver
from forewarn.sdk.transport.connection_reuse import Steps

Result = TypeVar("Result")


class GuestClient(EndpointClient):
    """Asks a metadata endpoint, as the machine that this program runs in.

    What may pass (404, 410, 429, 5xx, silence, rubbish) is asked again with growing pauses; `Unavailable`
    says that it did not pass in time, `Refused` that asking again will not help. Threads may share a client.
    """

    def __init__(
        self,
        url: str,
        *,
        api_version: str = NEWEST_VERSION,
        persistence: float = PERSISTENCE_SECONDS,
        timeout: float | None = None,
        pause: Callable[[float], object] | None = None,
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Take the endpoint's URL, and for how many seconds a single question is asked again.

        `timeout` is how many seconds an answer may take, beyond those for which a request is held; without,
        the first may take as long as Azure needs to turn the feature on.
        `pause` waits between requests, `monotonic` reads the clock; tests have their own.
        """
        super().__init__(
            url, api_version=api_version, persistence=persistence, timeout=timeout, monotonic=monotonic
        )
        self._closing = threading.Event()
        self._pause = pause or self._closing.wait

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

        It is the one that FOREWARN_ENDPOINT or SCHEDULEDEVENTSIP names, else 169.254.169.254 if it answers,
        else the one in the DHCP lease. Where there is none it is looked for again with growing pauses until
        `persistence` is over; a `NoEndpoint` then says where it was looked for.
        """
        usual = (around or surroundings()).default_url
        settings: dict[str, Any] = {"persistence": persistence, "timeout": timeout, "pause": pause}
        settings["monotonic"] = monotonic
        with cls(usual, **settings) as scout:
            found = scout.look(around)
        return cls(found.url, **settings)

    def look(self, around: Surroundings | None = None) -> Discovery:
        """Look for an endpoint, and return what was found where."""
        return self._run(self._look(around))

    def events(self) -> Document:
        """Return the machine's document as it is now."""
        return self._run(self._events())

    def approve(self, *events: Event | str) -> None:
        """Let events start before their time, by their ids; returns when that is saved."""
        self._run(self._approve(events))

    def watch(self, *, wait: int = WAIT_SECONDS, trouble: OnTrouble | None = None) -> Iterator[Document]:
        """Yield the document now, and then each time it changes, until the client is closed.

        The endpoint may be away for as long as it likes: `trouble` is called with the reason when that
        begins, and with None when it is over. A server that can is asked to hold each request until
        something changes, for `wait` seconds; 0 only polls.
        """
        documents = DocumentWatch(self._calls, wait=wait, trouble=trouble)
        with contextlib.suppress(Closed):
            while True:
                yield self._run(self._steps(documents.next(now=self._monotonic())))

    def instance(self) -> Instance:
        """Return who this machine is."""
        return self._run(self._instance())

    def close(self) -> None:
        """Hang up, from any thread: what is being asked ends with `Closed`, and a watch ends."""
        self._closing.set()
        self._connections.close()

    def __enter__(self) -> "GuestClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, steps: Steps[Result]) -> Result:
        return blocking_driver.run(steps, pause=self._pause)
