"""The client for programs that block."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import httpx

from forewarn.clock import monotonic
from forewarn.sdk.calls import PERSISTENCE_SECONDS, WAIT_SECONDS, Ask, Reply, Talk, Trouble, Watching
from forewarn.sdk.discovery import Discovery, looking
from forewarn.sdk.documents import NEWEST_VERSION, Document, Event
from forewarn.sdk.endpoint_client import Endpoint, ids_of
from forewarn.sdk.errors import Closed
from forewarn.sdk.instances import Instance
from forewarn.sdk.replies import Answer
from forewarn.sdk.surroundings import Surroundings, surroundings
from forewarn.sdk.transport import addresses

Result = TypeVar("Result")


class GuestClient(Endpoint):
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
        pause: Callable[[float], object] | None = None,
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Take the endpoint's URL, and for how many seconds a single question is asked again.

        `pause` waits between requests, `monotonic` reads the clock; tests have their own.
        """
        super().__init__(url, api_version=api_version, persistence=persistence, monotonic=monotonic)
        self._closing = threading.Event()
        self._pause = pause or self._closing.wait
        self._noting = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._http = httpx.Client(
            trust_env=False,  # never through a proxy
            verify=addresses.trusted(self.url),
            headers=addresses.HEADERS,
        )

    @classmethod
    def discover(
        cls,
        *,
        persistence: float = PERSISTENCE_SECONDS,
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
        with cls(usual, persistence=persistence, pause=pause, monotonic=monotonic) as scout:
            found = scout.look(around)
        return cls(found.url, persistence=persistence, pause=pause, monotonic=monotonic)

    def look(self, around: Surroundings | None = None) -> Discovery:
        """Look for an endpoint, and say what was found where."""
        sight = surroundings if around is None else lambda: around
        now = self._monotonic()
        return self._run(looking(self._conversation, sight, now=now, within=self._persistence))

    def events(self) -> Document:
        """Return what the machine is told now."""
        return self._run(self._conversation.events(now=self._monotonic(), within=self._persistence))

    def approve(self, *events: Event | str) -> None:
        """Let events start before their time, by their ids; returns when that is saved."""
        if ids := ids_of(events):
            self._run(self._conversation.approve(ids, now=self._monotonic(), within=self._persistence))

    def watch(self, *, wait: int = WAIT_SECONDS, trouble: Trouble | None = None) -> Iterator[Document]:
        """Yield the document now, and then each time it changes, until the client is closed.

        The endpoint may be away for as long as it likes: `trouble` is called with the reason when that
        begins, and with None when it is over. A server that can is asked to hold each request until
        something changes, for `wait` seconds; 0 only polls.
        """
        watching = Watching(self._conversation, wait=wait, trouble=trouble)
        with contextlib.suppress(Closed):
            while True:
                yield self._run(watching.next(now=self._monotonic()))

    def instance(self) -> Instance:
        """Return who this machine is."""
        return self._run(self._conversation.instance(within=self._persistence))

    def close(self) -> None:
        """Hang up, from any thread: what is being asked ends with `Closed`, and a watch ends."""
        self._closing.set()
        self._hang_up_all()
        self._http.close()

    def __enter__(self) -> "GuestClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, talk: Talk[Result]) -> Result:
        """Hold a talk."""
        try:
            ask = next(talk)
            while True:
                if ask.after:
                    self._pause(ask.after)
                ask = talk.send(self._send(ask))
        except StopIteration as end:
            result: Result = end.value
            return result

    def _send(self, ask: Ask) -> Reply:
        self._still_open()
        sent = self._monotonic()
        late = threading.Event()
        told: list[str] = []  # by the library, step by step
        try:
            with (
                self._limited(ask.seconds + addresses.CONNECT_SECONDS, late),
                self._http.stream(
                    ask.method,
                    self.url + ask.path,
                    params=dict(ask.query),
                    headers=dict(ask.headers),
                    content=ask.body,
                    timeout=httpx.Timeout(ask.seconds, connect=addresses.CONNECT_SECONDS),
                    extensions={"trace": partial(self._note, told)},
                ) as response,
            ):
                body = self._body(response, deadline=sent + ask.seconds)
        except RuntimeError:
            self._still_open()  # the library's own word for being closed meanwhile
            raise
        except httpx.HTTPError as error:
            self._still_open()
            if _is_stale(error, told) and not late.is_set():
                # The server may have ended that connection just now, and never have read this. If it has,
                # being asked twice does no harm: reading changes nothing, and an approval counts once.
                # It ends: each time there is one kept connection less.
                return self._send(ask)
            why = addresses.TOO_LATE if late.is_set() else _why(error)
            return addresses.silence(why, self.url, sent=sent, received=self._monotonic())
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(
            status=response.status_code, headers=headers, body=body, sent=sent, received=self._monotonic()
        )

    def _body(self, response: httpx.Response, *, deadline: float) -> bytes:
        """Read the body of an answer as it comes: not for ever, and not without end."""
        whole = bytearray()
        for part in response.iter_bytes():
            whole += part
            if len(whole) > addresses.LONGEST_BODY:
                raise httpx.ReadError(addresses.ENDLESS)
            if self._monotonic() > deadline:
                raise httpx.ReadTimeout("")
        return bytes(whole)

    @contextlib.contextmanager
    def _limited(self, seconds: float, late: threading.Event) -> Iterator[None]:
        """Hang up after so many seconds, and say so: the library counts anew with each byte of a header.

        On all connections: the library does not tell which one is used. Other threads ask again.
        """

        def end() -> None:
            late.set()
            self._hang_up_all()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _still_open(self) -> None:
        if self._closing.is_set():
            raise Closed(addresses.CLOSED)

    def _hang_up_all(self) -> None:
        with self._noting:
            for each in self._sockets:
                _hang_up(each)

    def _note(self, told: list[str], event: str, about: Mapping[str, Any]) -> None:
        """Keep hold of a new connection: only hanging up wakes a thread that waits for an answer."""
        told.append(event)
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        made = about["return_value"].get_extra_info("socket")
        with self._noting:
            self._sockets = {made, *(each for each in self._sockets if each.fileno() >= 0)}
        if self._closing.is_set():
            _hang_up(made)


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _is_stale(error: httpx.HTTPError, told: Sequence[str]) -> bool:
    """Say whether a connection that was kept from before has ended, and no answer was heard over it."""
    ended = isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError)
    return ended and not any(
        "connect_tcp" in each or each.endswith("response_headers.complete") for each in told
    )


def _why(error: httpx.HTTPError) -> str:
    """Say in words why nobody answered."""
    match error:
        case httpx.ConnectTimeout() | httpx.ConnectError():
            cause = _cause(error)
            why = (isinstance(cause, OSError) and cause.strerror) or str(error)
            return (
                addresses.unknown_name(why) if isinstance(cause, socket.gaierror) else addresses.nobody(why)
            )
        case httpx.TimeoutException():
            return addresses.TOO_LATE
        case _:
            return str(error) or type(error).__name__


def _cause(error: BaseException) -> BaseException:
    """Find the system's error behind the library's, which hides it."""
    while behind := error.__cause__ or error.__context__:
        error = behind
    return error
