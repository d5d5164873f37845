"""A small web server that answers with its name, and holds slow requests until the test releases them."""

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.helpers.programs.process import PATIENCE, free_port


class Web:
    """Answers with its name: at once, or under /slow after `release`. It can be stopped and started."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.port = free_port()
        self.held = 0  # waiting slow requests
        self._released = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        """Stop the server, if it runs."""
        self.release()
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server = self._thread = None

    def release(self) -> None:
        """Answer waiting slow requests, and later ones at once."""
        self._released.set()

    def answer(self, path: str) -> bytes:
        if path == "/slow":
            self.held += 1
            self._released.wait(PATIENCE)
            self.held -= 1
        return self.name.encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = web.answer(self.path)
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def handle(self) -> None:
                with suppress(ConnectionError):  # the client may have disconnected
                    super().handle()

        return Handler
