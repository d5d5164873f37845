"""Calls of the operator API: one request, one reply."""

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
from forewarn.client.retrying import KEY_HEADER, Tries, changes_something, describe, new_key

if TYPE_CHECKING:
    import ssl

    import httpx

    from forewarn.client.async_calls import AsyncOperatorClient
    from forewarn.wire.answers.answer import ApiAnswer, Page

A = TypeVar("A", bound="ApiAnswer")
T = TypeVar("T")
Json = dict[str, Any]

# An order is answered in milliseconds; a clock that is turned by a year may take a while.
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 600.0

_SENDABLE = re.compile(r"[!-~]+")


class OperatorClient:
    """A server, by its URL."""

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
        """Take who asks, and a file of certificates to trust instead of those that everybody trusts.

        Before a call is sent again, `say` is called with the reason. A server that sends nothing for
        `answer_seconds` is unreachable.
        """
        url = server if "://" in server else f"http://{server}"
        self._url = url.rstrip("/")
        self._token = token
        self._authorities = authorities
        self._wait: Callable[[float], object] = wait or threading.Event().wait
        self._say = say
        self._answer_seconds = answer_seconds
        self._kept: httpx.Client | None = None  # of the thread that keeps it open; else each call has its own

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._url

    @contextmanager
    def keeping_connection(self) -> "Iterator[OperatorClient]":
        """Give a client of the same server that keeps its connection, for many calls."""
        again = self.with_answer_timeout(self._answer_seconds)
        with self._connection() as again._kept:
            yield again

    def with_answer_timeout(self, seconds: float) -> "OperatorClient":
        """Return a client of the same server that waits no longer than this for it to send something."""
        return OperatorClient(
            self._url,
            token=self._token,
            authorities=self._authorities,
            wait=self._wait,
            say=self._say,
            answer_seconds=seconds,
        )

    def get(self, path: str, answer: type[A], **params: Any) -> Reply[A]:
        """Ask for something."""
        return self.call("GET", path, answer, params=params)

    def post(
        self, path: str, answer: type[A], body: Body = None, *, key: str | None = None, **params: Any
    ) -> Reply[A]:
        """Order something; what is None in the body is left out.

        It is sent again if need be; with a key of the caller's it is sent once, and the caller may do so.
        """
        sent = given(body) if body else body
        if key is None:
            return self.call("POST", path, answer, body=sent, params=params)
        reply = self._patiently(lambda: self._try("POST", path, body=sent, params=params, key=key), Tries())
        return reply_of(reply, answer, url=self._url)

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
        """Send a request and return the server's reply."""
        sent = self._send(method, path, body=body, params=params or {}, headers=headers)
        return reply_of(sent, answer, url=self._url)

    def page(self, item: type[A], **params: Any) -> "Reply[Page[A]]":
        """Ask for one page of a list."""
        return reply_of_page(self._send("GET", f"/v1/{item.NOUN}s", params=params), item, url=self._url)

    def all(self, item: type[A], **params: Any) -> "Reply[Page[A]]":
        """Ask for a whole list, page by page; it is returned as one."""
        key, after = f"{item.NOUN}s", None
        found: list[Any] = []
        while True:
            page = self._send("GET", f"/v1/{key}", params={**params, "limit": PAGE, "after": after})
            found += page[key]
            after = page["next"]
            if after is None:
                return reply_of_page({key: found, "next": None}, item, url=self._url)

    def text(self, path: str, **params: Any) -> str:
        """Ask for something that is not JSON."""

        def ask() -> str:
            with self._reaching(), self._open() as client:
                answer = client.get(self._url + path, params=given(params))
            if answer.status_code >= FIRST_ERROR:
                read_reply(self._url, answer)
            return answer.text

        return self._patiently(ask, Tries())

    @contextmanager
    def lines(self, path: str, *, patience: float, **params: Any) -> "Iterator[httpx.Response]":
        """Open an answer that has no end, to be read line by line; silence may last as long as `patience`."""
        import httpx

        timeout = httpx.Timeout(patience, connect=CONNECT_SECONDS)
        with (
            self._reaching(),
            self._connection() as client,
            client.stream("GET", self._url + path, params=given(params), timeout=timeout) as answer,
        ):
            if answer.status_code >= FIRST_ERROR:
                answer.read()
                read_reply(self._url, answer)
            yield answer

    def as_async_client(self) -> "AsyncOperatorClient":
        """Return a client of the same server for an event loop, to be closed in the end."""
        import httpx

        from forewarn.client.async_calls import AsyncOperatorClient

        return AsyncOperatorClient(httpx.AsyncClient(base_url=self._url, **self._options()))

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        key = new_key() if method == "POST" else None
        changes = changes_something(method, body=body, params=params)
        return self._patiently(
            lambda: self._try(method, path, body=body, params=params, key=key, headers=headers),
            Tries(has_key=key is not None, changes=changes),
        )

    def _patiently(self, call: Callable[[], T], tries: Tries) -> T:
        """Send a call again as long as that does no harm, and may help."""
        while True:
            try:
                return call()
            except (RequestRefused, ServerUnreachable) as error:
                seconds = tries.pause_after(error)
                if seconds is None:
                    raise tries.outcome(error) from None
                self._say(describe(error, seconds))
            self._wait(seconds)

    def _try(
        self,
        method: str,
        path: str,
        *,
        body: object,
        params: Mapping[str, Any],
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        sent_headers = {**(headers or {}), **({} if key is None else {KEY_HEADER: key})}
        with self._reaching(method), self._open() as client:
            sent = client.request(
                method, self._url + path, params=given(params), json=body, headers=sent_headers
            )
        return read_reply(self._url, sent)

    @contextmanager
    def _reaching(self, method: str = "GET") -> Iterator[None]:
        import httpx

        try:
            yield
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise unreachable(self._url, error, method=method) from None

    def _open(self) -> "AbstractContextManager[httpx.Client]":
        return self._connection() if self._kept is None else nullcontext(self._kept)

    def _connection(self) -> "httpx.Client":
        import httpx

        return httpx.Client(**self._options())

    def _options(self) -> dict[str, Any]:
        import httpx

        return {
            # No proxy: what is on loopback or in the machine room is not reached through one.
            "trust_env": False,
            "timeout": httpx.Timeout(self._answer_seconds, connect=CONNECT_SECONDS),
            "headers": self._headers(),
            "verify": self._trusted(),
        }

    def _headers(self) -> dict[str, str]:
        if self._token is None:
            return {}
        # Said here, without repeating it: what cannot be sent would be shown in the library's own error.
        if not _SENDABLE.fullmatch(self._token):
            raise RequestRefused(
                "the token has characters that no token has: check FOREWARN_TOKEN or --token"
            )
        return {"Authorization": f"Bearer {self._token}"}

    def _trusted(self) -> "ssl.SSLContext | bool":
        import ssl

        if not self._url.startswith("https:"):
            return False  # no certificate is shown, and to load the authorities takes longer than a call
        if self._authorities is None:
            return True
        try:
            return ssl.create_default_context(cafile=self._authorities)
        except OSError as error:
            raise RequestRefused(f"FOREWARN_CA: {self._authorities} cannot be used: {error}") from None
