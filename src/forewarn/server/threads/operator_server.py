"""The operator API's server: uvicorn on a loop and a thread of its own."""

import socket
import threading
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from forewarn.guest.http.refusals import Refusals
from forewarn.server.threads.acceptor import Acceptor, Caps
from forewarn.server.threads.operator_connection import OperatorConnection, Patience
from forewarn.server.tls import Tls


class OperatorServer:
    """Serves the app on a socket that is bound already."""

    def __init__(
        self,
        app: ASGIApp,
        bound: socket.socket,
        *,
        caps: Caps,
        refusals: Refusals,
        tls: Tls | None = None,
        patience: Patience | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
            # Held connections must not keep the program from ending.
            timeout_graceful_shutdown=3,
        )
        self._socket = bound
        self._server = _Server(config, caps=caps, refusals=refusals, patience=patience or Patience())
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
    """A server whose connections are accepted one by one, and that signals when it has started."""

    def __init__(self, config: uvicorn.Config, *, caps: Caps, refusals: Refusals, patience: Patience) -> None:
        super().__init__(config)
        self.answering = threading.Event()
        self._caps = caps
        self._refusals = refusals
        self._patience = patience

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers = [self._acceptor(each) for each in sockets or ()]  # type: ignore[misc]  # it is closed alike
        self.started = True
        self.answering.set()

    def _acceptor(self, listening: socket.socket) -> Acceptor:
        return Acceptor(
            listening,
            self._connect,
            caps=self._caps,
            refusals=self._refusals,
            tls=self.config.ssl,
            handshake=self._patience.handshake,
        )

    def _connect(self, ended: Callable[[], None]) -> OperatorConnection:
        return OperatorConnection(
            ended=ended,
            patience=self._patience,
            config=self.config,
            server_state=self.server_state,
            app_state={},
        )
