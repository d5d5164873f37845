"""The operator API's server: uvicorn on a loop and a thread of its own."""

import socket
import threading

import uvicorn
from starlette.types import ASGIApp

from forewarn.server.tls import Tls


class OperatorServer:
    """Serves the app on a socket that is bound already."""

    def __init__(self, app: ASGIApp, bound: socket.socket, *, tls: Tls | None = None) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
            # Held connections must not keep the program from ending.
            timeout_graceful_shutdown=3,
        )
        self._socket = bound
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._run, name="forewarn-operator", daemon=True)

    def start(self) -> None:
        """Serve; returns when it answers."""
        self._thread.start()
        self._server.answering.wait()

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._server.answering.set()


class _Server(uvicorn.Server):
    """A server that signals when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.answering.set()
