"""The operator API's server: uvicorn on a loop and a thread of its own."""

import socket
import ssl
import threading
from collections.abc import Callable, Sequence

import uvicorn
from starlette.types import ASGIApp

from forewarn.guest.http.refusals import Refusals
from forewarn.server.threads.acceptor import Acceptor, Caps
from forewarn.server.threads.operator_connection import OperatorConnection, Patience


class OperatorServer:
    """Serves the app on sockets that are bound already."""

    def __init__(
        self,
        app: ASGIApp,
        bound: Sequence[socket.socket],
        *,
        caps: Caps,
        refusals: Refusals,
        tls: ssl.SSLContext | None = None,
        patience: Patience | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            # Else whoever calls from this machine could say where from and how: `X-Forwarded-For`, `-Proto`.
            proxy_headers=False,
            # Held connections must not keep the program from ending.
            timeout_graceful_shutdown=3,
        )
        self._sockets = bound
        self._server = _Server(config, caps=caps, refusals=refusals, patience=patience or Patience(), tls=tls)
        self._thread = threading.Thread(target=self._run, name="forewarn-operator", daemon=True)

    def start(self) -> None:
        """Serve; returns when it answers."""
        self._thread.start()
        self._server.answering.wait()

    def use(self, tls: ssl.SSLContext) -> None:
        """Speak TLS with other certificates, with those who connect from now on."""
        self._server.tls = tls

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        try:
            self._server.run(sockets=list(self._sockets))
        finally:
            self._server.answering.set()


class _Server(uvicorn.Server):
    """A server whose connections are accepted one by one, and that signals when it has started."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        caps: Caps,
        refusals: Refusals,
        patience: Patience,
        tls: ssl.SSLContext | None,
    ) -> None:
        super().__init__(config)
        self.tls = tls
        self.answering = threading.Event()
        self._caps = caps
        self._refusals = refusals
        self._patience = patience

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # One for all: callers are counted wherever they come in.
        self.servers = [self._acceptor(sockets or ())]  # type: ignore[list-item]  # it is closed alike
        self.started = True
        self.answering.set()

    def _acceptor(self, listening: Sequence[socket.socket]) -> Acceptor:
        return Acceptor(
            listening,
            self._connect,
            caps=self._caps,
            refusals=self._refusals,
            tls=lambda: self.tls,
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
