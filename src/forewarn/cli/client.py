"""The way from the command line to a server: one call, one answer, and two ways to fail."""

from collections.abc import Mapping
from typing import Any

# An order is answered in milliseconds; a clock that is turned by a year may take a while.
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 600.0
# As many as the server gives at once.
PAGE = 1000
FIRST_ERROR = 400

ADVICE = "Start one with `forewarn serve`, or set FOREWARN_SERVER (or --server) to where it is."


class Refused(Exception):
    """The server said no; the message is its own."""


class Unreachable(Exception):
    """There is no server, or nothing that talks like one."""


class Client:
    """A server, by its URL."""

    def __init__(self, server: str) -> None:
        url = server if "://" in server else f"http://{server}"
        self._url = url.rstrip("/")

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
            with httpx.Client(trust_env=False, timeout=timeout) as client:
                answer = client.request(method, self._url + path, params=query, json=body)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Unreachable(f"No server answers at {self._url} ({error}).\n{ADVICE}") from None
        return self._read(answer.status_code, answer.content)

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
