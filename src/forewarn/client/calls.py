"""Calls of the operator API: one request, one answer, and two ways to fail."""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpx

# An order is answered in milliseconds; a clock that is turned by a year may take a while.
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 600.0
# As many as the server gives at once.
PAGE = 1000
FIRST_ERROR = 400
FORBIDDEN, UNAVAILABLE = 403, 503

ADVICE = "Start one with `forewarn serve`, or set FOREWARN_SERVER (or --server) to where it is."


_SENDABLE = re.compile(r"[!-~]+")


class RequestRefused(Exception):
    """The server said no; the message is its own, and so is the status, if it was asked at all."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServerUnreachable(Exception):
    """There is no server, or nothing that talks like one."""


class OperatorClient:
    """A server, by its URL."""

    def __init__(self, server: str, *, token: str | None = None, authorities: str | None = None) -> None:
        """Take who asks, and a file of certificates to trust instead of those that everybody trusts."""
        url = server if "://" in server else f"http://{server}"
        self._url = url.rstrip("/")
        self._token = token
        self._authorities = authorities
        self._kept: httpx.Client | None = None

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._url

    @contextmanager
    def kept_open(self) -> "Iterator[OperatorClient]":
        """Give the same way to the server over a connection that is kept, for those who ask often."""
        again = OperatorClient(self._url, token=self._token, authorities=self._authorities)
        with self._connection() as again._kept:
            yield again

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """Ask for something."""
        return self.call("GET", path, params=params)

    def text(self, path: str, **params: Any) -> str:
        """Ask for something that is not JSON."""
        query = {name: value for name, value in params.items() if value is not None}
        with self._reaching(), self._open() as client:
            answer = client.get(self._url + path, params=query)
        if answer.status_code >= FIRST_ERROR:
            self._read(answer.status_code, answer.content)
        return answer.text

    def post(self, path: str, body: object = None, **params: Any) -> dict[str, Any]:
        """Order something."""
        return self.call("POST", path, body=body, params=params)

    def all(self, what: str, **params: Any) -> dict[str, Any]:
        """Read a whole list, page by page."""
        path, found, after = f"/v1/{what}", [], None
        while True:
            page = self.get(path, **params, limit=PAGE, after=after)
            found += page[what]
            after = page["next"]
            if after is None:
                return {what: found, "next": None}

    def call(
        self, method: str, path: str, *, body: object = None, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request and return what the server answers."""
        query = {name: value for name, value in (params or {}).items() if value is not None}
        with self._reaching(), self._open() as client:
            answer = client.request(method, self._url + path, params=query, json=body)
        return self._read(answer.status_code, answer.content)

    @contextmanager
    def lines(self, path: str, *, patience: float, **params: Any) -> "Iterator[httpx.Response]":
        """Open an answer that has no end, to be read line by line; silence may last as long as `patience`."""
        import httpx

        timeout = httpx.Timeout(patience, connect=CONNECT_SECONDS)
        query = {name: value for name, value in params.items() if value is not None}
        with (
            self._reaching(),
            self._connection() as client,
            client.stream("GET", self._url + path, params=query, timeout=timeout) as answer,
        ):
            if answer.status_code >= FIRST_ERROR:
                self._read(answer.status_code, answer.read())
            yield answer

    def conversation(self) -> "httpx.AsyncClient":
        """Open a client for many calls, made on an event loop; whoever asks for it closes it."""
        import httpx

        return httpx.AsyncClient(base_url=self._url, **self._options())

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ServerUnreachable(f"No server answers at {self._url} ({error}).\n{ADVICE}") from None

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
            "timeout": httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
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

        if self._authorities is None or not self._url.startswith("https:"):
            return True
        try:
            return ssl.create_default_context(cafile=self._authorities)
        except OSError as error:
            raise RequestRefused(f"FOREWARN_CA: {self._authorities} cannot be used: {error}") from None

    def _read(self, status: int, content: bytes) -> dict[str, Any]:
        import json

        try:
            said = json.loads(content)
            refused = status >= FIRST_ERROR
            message = said["error"]["message"] if refused else ""
        except (ValueError, KeyError, TypeError):
            raise ServerUnreachable(f"What answers at {self._url} is no forewarn server.\n{ADVICE}") from None
        if refused:
            raise RequestRefused(message, status=status)
        return dict(said)
