"""A reader of the stream that implements only the standard of server-sent events."""

import json
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any

import httpx

from tests.helpers.programs.process import PATIENCE, operator_client, until


class Follower:
    """Follows the stream on its own thread, and resumes after the last record."""

    def __init__(
        self, url: str, query: str = "", *, token: str | None = None, cookie: str | None = None
    ) -> None:
        self.records: list[dict[str, Any]] = []
        self.kinds: list[str] = []
        self.last: str | None = None
        self.whole = False  # whether the stream ended with a complete HTTP response
        self._url = url
        self._path = f"/v1/stream{query}"
        self._token = token
        self._cookie = cookie
        self._follow()

    def __enter__(self) -> "Follower":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    @property
    def numbers(self) -> list[int]:
        return [record["number"] for record in self.records]

    def disconnect(self) -> None:
        """Disconnect, like a reader whose connection breaks."""
        with suppress(OSError):  # the server may have closed it first
            self._answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self.wait_for_the_end()

    def wait_for_the_end(self) -> None:
        """Wait for the end of the stream."""
        self._thread.join(PATIENCE)
        self._client.close()

    def resume(self, url: str | None = None) -> None:
        """Resume, like a browser."""
        self._url = url or self._url
        self._follow()

    def wait_for(self, number: int) -> None:
        until(lambda: self.last is not None and int(self.last) >= number, what=f"record {number}")

    def _follow(self) -> None:
        headers = {} if self.last is None else {"Last-Event-ID": self.last}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._cookie is not None:
            headers["Cookie"] = self._cookie
        self.whole = False
        self._client = operator_client(self._url)
        request = self._client.build_request("GET", self._path, headers=headers)
        self._answer = self._client.send(request, stream=True)
        assert self._answer.status_code == 200, self._answer.read()
        assert self._answer.headers["content-type"].startswith("text/event-stream")
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with suppress(httpx.TransportError):
            for block in blocks(self._answer.iter_lines()):
                self._take(block)
            self.whole = True

    def _take(self, block: dict[str, str]) -> None:
        if "data" in block:
            self.records.append(json.loads(block["data"]))
            self.kinds.append(block["event"])
        self.last = block.get("id", self.last)


def blocks(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Split lines into blocks. A line that begins with a colon is a comment."""
    block: dict[str, str] = {}
    for line in lines:
        if not line:
            yield block
            block = {}
        elif not line.startswith(":"):
            field, _, value = line.partition(": ")
            block[field] = value
