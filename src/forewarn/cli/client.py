"""The way from the command line to a server: one call, one answer, and two ways to fail."""

import re
from collections.abc import Mapping
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

ADVICE = "Start one with `forewarn serve`, or set FOREWARN_SERVER (or --server) to where it is."


_SENDABLE = re.compile(r"[!-~]+")


class Refused(Exception):
    """The server said no; the message is its own."""


class Unreachable(Exception):
    """There is no server, or nothing that talks like one."""


class Client:
    """A server, by its URL."""

    def __init__(self, server: str, *, token: str | None = None, authorities: str | None = None) -> None:
        """Take who asks, and a file of certificates to trust instead of those that everybody trusts."""
        url = server if "://" in server else f"http://{server}"
        self._url = url.rstrip("/")
        self._token = token
        self._authorities = authorities

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """Ask for something."""
        return self.call("GET", path, params=params)

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
        import httpx

        query = {name: value for name, value in (params or {}).items() if value is not None}
        timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        try:
            # No proxy: what is on loopback or in the machine room is not reached through one.
            with httpx.Client(
                trust_env=False, timeout=timeout, headers=self._headers(), verify=self._trusted()
            ) as client:
                answer = client.request(method, self._url + path, params=query, json=body)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Unreachable(f"No server answers at {self._url} ({error}).\n{ADVICE}") from None
        return self._read(answer.status_code, answer.content)

    def conversation(self) -> "httpx.AsyncClient":
        """Open a client for many calls, made on an event loop; whoever asks for it closes it."""
        import httpx

        timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        return httpx.AsyncClient(
            base_url=self._url,
            trust_env=False,
            timeout=timeout,
            headers=self._headers(),
            verify=self._trusted(),
        )

    def _headers(self) -> dict[str, str]:
        if self._token is None:
            return {}
        # Said here, without repeating it: what cannot be sent would be shown in the library's own error.
        if not _SENDABLE.fullmatch(self._token):
            raise Refused("the token has characters that no token has: check FOREWARN_TOKEN or --token")
        return {"Authorization": f"Bearer {self._token}"}

    def _trusted(self) -> "ssl.SSLContext | bool":
        import ssl

        if self._authorities is None or not self._url.startswith("https:"):
            return True
        try:
            return ssl.create_default_context(cafile=self._authorities)
        except OSError as error:
            raise Refused(f"FOREWARN_CA: {self._authorities} cannot be used: {error}") from None

    def _read(self, status: int, content: bytes) -> dict[str, Any]:
        import json

        try:
            said = json.loads(content)
            refused = status >= FIRST_ERROR
            message = said["error"]["message"] if refused else ""
        except (ValueError, KeyError, TypeError):
            raise Unreachable(f"What answers at {self._url} is no forewarn server.\n{ADVICE}") from None
        if refused:
            raise Refused(message)
        return dict(said)
