"""A client of the operator API, on one connection."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any

from bench.processes import Failed


class Operator:
    """A caller of the operator API."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = HTTPConnection("127.0.0.1", port, timeout=120)

    def get(self, path: str) -> Any:
        """Send a GET request; return the answer."""
        return self._call("GET", path, None, {})

    def post(
        self, path: str, body: dict[str, Any] | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Send a POST request; return the answer."""
        return self._call("POST", path, body, headers or {})

    def order(self, machine: str, action: str) -> str:
        """Place an order for a machine; return its id."""
        identity: str = self.post(f"/v1/machines/{machine}/{action}")["order"]["id"]
        return identity

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _call(self, method: str, path: str, body: dict[str, Any] | None, headers: Mapping[str, str]) -> Any:
        kind = {} if body is None else {"Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, {**kind, **headers})
        response = self._connection.getresponse()
        content = response.read()
        if response.status >= 300:
            raise Failed(f"{method} {path}: {response.status} {content.decode()[:200]}")
        return json.loads(content)
