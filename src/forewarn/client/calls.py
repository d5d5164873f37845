"""The client of the operator API."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from forewarn.client.replies import (
    FIRST_ERROR,
    PAGE,
    Body,
    Reply,
    RequestRefused,
    ServerUnreachable,
    given,
    read_reply,
    reply_of,
    reply_of_page,
    unreachable,
)
from forewarn.client.retrying import KEY_HEADER, RetryState, changes_something, new_key

if TYPE_CHECKING:
    import ssl

    import httpx

    from forewarn.client.async_calls import AsyncOperatorClient
    from forewarn.wire.answers.answer import ApiAnswer, Page

A = TypeVar("A", bound="ApiAnswer")
T = TypeVar("T")
Json = dict[str, Any]

# Most answers take milliseconds, but advancing the clock by a year may take minutes.
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 600.0

_SENDABLE = re.compile(r"[!-~]+")


class OperatorClient:
    """A client of one server."""

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        authorities: str | None = None,
        wait: Callable[[float], object] | None = None,
        say: Callable[[str], None] = lambda _: None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Take the URL of the server.

        `authorities` is a file of certificates to trust instead of the usual ones. `say` is called with the
        reason before each retry. A server that sends nothing for `answer_seconds` is unreachable.
        """
        url = server if "://" in server else f"http://{server}"
        self.url = url.rstrip("/")
        self._token = token
        self._authorities = authorities
        self._wait: Callable[[float], object] = wait or threading.Event().wait
        self._say = say
        self._answer_seconds = answer_seconds
        self._kept: httpx.Client | None = None  # the open connection; None: each call connects

    @contextmanager
    def keeping_connection(self) -> "Iterator[OperatorClient]":
        """Yield a client of the same server that keeps its connection open, for many calls."""
        again = self.with_answer_timeout(self._answer_seconds)
        with self._connection() as again._kept:
            yield again

    def with_answer_timeout(self, seconds: float) -> "OperatorClient":
        """Return a client of the same server with another `answer_seconds`."""
        return OperatorClient(
            self.url,
            token=self._token,
            authorities=self._authorities,
            wait=self._wait,
            say=self._say,
            answer_seconds=seconds,
        )

    def get(self, path: str, answer: type[A], **params: Any) -> Reply[A]:
        """Send a GET request."""
        return self.call("GET", path, answer, params=params)

    def post(
        self, path: str, answer: type[A], body: Body = None, *, key: str | None = None, **params: Any
    ) -> Reply[A]:
        """Send a POST request; keys of the body that are None are omitted.

        The client retries it, unless the caller gives a key: then the caller may repeat the call with that
        key.
        """
        sent = self._send("POST", path, body=body and given(body), params=params, key=key)
        return reply_of(sent, answer, url=self.url)

    def call(
        self,
        method: str,
        path: str,
        answer: type[A],
        *,
        body: object = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply[A]:
        """Send a request and return the reply."""
        sent = self._send(method, path, body=body, params=params or {}, headers=headers)
        return reply_of(sent, answer, url=self.url)

    def page(self, item: type[A], **params: Any) -> "Reply[Page[A]]":
        """Get one page of a list."""
        return reply_of_page(self._send("GET", f"/v1/{item.NOUN}s", params=params), item, url=self.url)

    def all(self, item: type[A], **params: Any) -> "Reply[Page[A]]":
        """Get all pages of a list as one page."""
        key, after = f"{item.NOUN}s", None
        found: list[Any] = []
        while True:
            page = self._send("GET", f"/v1/{key}", params={**params, "limit": PAGE, "after": after})
            found += page[key]
            after = page["next"]
            if after is None:
                return reply_of_page({key: found, "next": None}, item, url=self.url)

    def text(self, path: str, **params: Any) -> str:
        """Get a text that is not JSON."""

        def ask() -> str:
            with self._translating_errors(), self._open() as client:
                answer = client.get(self.url + path, params=given(params))
            if answer.status_code >= FIRST_ERROR:
                read_reply(self.url, answer)
            return answer.text

        return self._with_retries(ask, RetryState())

    @contextmanager
    def lines(self, path: str, *, patience: float, **params: Any) -> "Iterator[httpx.Response]":
        """Open a stream, to be read line by line; `patience` limits the pause between two lines."""
        import httpx

        timeout = httpx.Timeout(patience, connect=CONNECT_SECONDS)
        with (
            self._translating_errors(),
            self._connection() as client,
            client.stream("GET", self.url + path, params=given(params), timeout=timeout) as answer,
        ):
            if answer.status_code >= FIRST_ERROR:
                answer.read()
                read_reply(self.url, answer)
            yield answer

    def as_async_client(self) -> "AsyncOperatorClient":
        """Return an asyncio client of the same server; close it afterwards."""
        import httpx

        from forewarn.client.async_calls import AsyncOperatorClient

        return AsyncOperatorClient(httpx.AsyncClient(base_url=self.url, **self._options()))

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any],
        body: object = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Json:
        """Send a request and retry it. If the caller gave a key, only the caller retries."""
        sent_headers = {**(headers or {})}
        tries = RetryState()
        if key is None:
            changes = changes_something(method, body=body, params=params)
            tries = RetryState(has_key=method == "POST", changes=changes)
        if method == "POST":
            sent_headers[KEY_HEADER] = key or new_key()

        def send() -> Json:
            with self._translating_errors(method), self._open() as client:
                sent = client.request(
                    method, self.url + path, params=given(params), json=body, headers=sent_headers
                )
            return read_reply(self.url, sent)

        return self._with_retries(send, tries)

    def _with_retries(self, call: Callable[[], T], tries: RetryState) -> T:
        while True:
            try:
                return call()
            except (RequestRefused, ServerUnreachable) as error:
                seconds = tries.pause_after(error)
                if seconds is None:
                    raise tries.outcome(error) from None
                self._say(f"trying again in {seconds:g} s: {str(error).splitlines()[0]}")
            self._wait(seconds)

    @contextmanager
    def _translating_errors(self, method: str = "GET") -> Iterator[None]:
        import httpx

        try:
            yield
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise unreachable(self.url, error, method=method) from None

    def _open(self) -> "AbstractContextManager[httpx.Client]":
        return self._connection() if self._kept is None else nullcontext(self._kept)

    def _connection(self) -> "httpx.Client":
        import httpx

        return httpx.Client(**self._options())

    def _options(self) -> dict[str, Any]:
        import httpx

        return {
            # No proxy: the server is on this computer or in the local network.
            "trust_env": False,
            "timeout": httpx.Timeout(self._answer_seconds, connect=CONNECT_SECONDS),
            "headers": self._headers(),
            "verify": self._tls(),
        }

    def _headers(self) -> dict[str, str]:
        if self._token is None:
            return {}
        # Checked here, because the error of the library would show the token.
        if not _SENDABLE.fullmatch(self._token):
            raise RequestRefused("the token has invalid characters: check FOREWARN_TOKEN or --token")
        return {"Authorization": f"Bearer {self._token}"}

    def _tls(self) -> "ssl.SSLContext | bool":
        import ssl

        if not self.url.startswith("https:"):
            return False  # plain HTTP needs no certificates, and loading them takes longer than a call
        if self._authorities is None:
            return True
        try:
            return ssl.create_default_context(cafile=self._authorities)
        except OSError as error:
            raise RequestRefused(f"FOREWARN_CA: {self._authorities} cannot be used: {error}") from None
