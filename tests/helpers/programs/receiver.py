"""A webhook receiver: a real HTTP server that misbehaves as the test chooses."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.helpers.programs.process import PATIENCE


class Receiver:
    """The received calls, and how to answer new ones."""

    def __init__(self) -> None:
        self.answer: Callable[[int], int] = lambda count: 204  # by the number of calls received so far
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.taken: list[dict[str, Any]] = []
        self.released = threading.Event()
        self.released.set()
        self.waiting = 0  # calls without an answer so far
        self.most_waiting = 0
        self.url = ""
        self._lock = threading.Lock()

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of the accepted records, each once, in the order of arrival."""
        records = (event["data"]["number"] for event in self.taken if "number" in event["data"])
        return list(dict.fromkeys(records))

    def take(self, headers: dict[str, str], body: bytes) -> int:
        with self._lock:
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
        self.released.wait(PATIENCE)
        with self._lock:
            self.waiting -= 1
            self.calls.append((headers, body))
            status = self.answer(len(self.calls))
            if status < 300:
                self.taken.append(json.loads(body))
        return status


def is_signed(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """Verify a call as https://github.com/standard-webhooks/standard-webhooks specifies."""
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(base64.b64decode(secret.split("_")[1]), content, hashlib.sha256).digest()
    return headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.take(headers, body)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", receiver.url)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def handle(self) -> None:
            with suppress(ConnectionError, ssl.SSLError):  # the sender may have timed out
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
