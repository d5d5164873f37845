"""The operator port: TLS, the console beside the API, and uvicorn on a loop and a thread of its own."""

import socket
import ssl
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import uvicorn
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarn.api.middleware import address_middleware
from forewarn.config import OperatorSettings
from forewarn.console.console_app import AS_THEY_ARE, SECURITY_HEADERS, ConsoleApp, WithSecurityHeaders
from forewarn.console.console_paths import is_console
from forewarn.core.errors import Invalid
from forewarn.server.threads.acceptor import Acceptor, Caps
from forewarn.server.threads.operator_connection import OperatorConnection, Patience, PortCounts
from forewarn.supervision import BackgroundTask, Supervisor


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Two files, in PEM; the first may hold the certificates that lead to the root too."""

    certificate: str
    key: str

    def context(self) -> ssl.SSLContext:
        """Read the files as they are now; Invalid if they cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # A key with a passphrase would have OpenSSL ask at the terminal, where no person may be.
            context.load_cert_chain(self.certificate, self.key, password="")
        except OSError as error:  # what ssl raises is one too
            reason = error.strerror if type(error) is not ssl.SSLError and error.strerror else error
            raise Invalid(
                f"[operator] certificate {self.certificate} and key {self.key} cannot be used: {reason}"
            ) from None
        return context


def tls_of(settings: OperatorSettings) -> Tls | None:
    """Take what is set; None if TLS is not wanted."""
    certificate, key = settings.certificate, settings.key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Invalid("[operator] certificate and key: expected both or neither")
    return Tls(certificate=certificate, key=key)


# Shorter answers fit into a packet or two.
COMPRESSED_FROM = 2048
# As small as it gets in little time: a list of 1,000 machines shrinks to a thirteenth in two milliseconds.
COMPRESSION = 6


def operator_app(api: ASGIApp, *, names: Collection[str], origins: Collection[str] = ()) -> ASGIApp:
    """Put the console beside the API, behind the guards of Host and Origin that the API has of its own."""
    console: ASGIApp = ConsoleApp()
    for guard, given, options in reversed(address_middleware(names=names, origins=origins)):
        console = guard(console, *given, **options)
    console = WithSecurityHeaders(console, SECURITY_HEADERS)
    api = GZipMiddleware(api, COMPRESSED_FROM, COMPRESSION)
    api = WithSecurityHeaders(api, AS_THEY_ARE)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        face = console if scope["type"] == "http" and is_console(scope["path"]) else api
        await face(scope, receive, send)

    return app


class OperatorServer:
    """Serves the app on sockets that are bound already."""

    def __init__(
        self,
        app: ASGIApp,
        bound: Sequence[socket.socket],
        *,
        caps: Caps,
        counts: PortCounts,
        tls: ssl.SSLContext | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._config = uvicorn.Config(
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
        self._caps = caps
        self._counts = counts
        self._patience = patience or Patience()
        self._tls = tls  # owner: the thread that reads settings again; each new connection takes it as it is
        self._is_answering = threading.Event()
        # `stop` writes the first and then reads the second, the operator thread the other way round.
        self._is_ending = False  # owner: the thread that calls `stop`, which sets it once
        self._server: _Server | None = None  # owner: the operator thread
        self.supervisor = Supervisor()  # until it is given the server's, before the thread is started
        self._thread = threading.Thread(target=self._serve, name="forewarn-operator", daemon=True)

    def start(self) -> None:
        """Serve; returns when it answers."""
        self._thread.start()
        self._is_answering.wait()

    def use(self, tls: ssl.SSLContext) -> None:
        """Speak TLS with other certificates, with those who connect from now on."""
        self._tls = tls

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self._is_ending = True
        if self._server is not None:
            self._server.should_exit = True
        self._thread.join()

    def _serve(self) -> None:
        try:
            self.supervisor.run(BackgroundTask.OPERATOR_PORT, self._run)
        finally:
            self._is_answering.set()
            for each in self._sockets:
                each.close()

    def _run(self) -> None:
        """Serve until it is to end, on copies of the sockets: uvicorn closes those that it is given."""
        server = _Server(
            self._config,
            caps=self._caps,
            counts=self._counts,
            patience=self._patience,
            tls=lambda: self._tls,
            answering=self._is_answering,
        )
        self._server = server  # before it is looked whether to end, so that `stop` reaches it
        copies = [each.dup() for each in self._sockets]
        try:
            if not self._is_ending:
                server.run(sockets=copies)
        finally:
            for each in copies:
                each.close()


class _Server(uvicorn.Server):
    """A server whose connections are accepted one by one, and that signals when it has started."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        caps: Caps,
        counts: PortCounts,
        patience: Patience,
        tls: Callable[[], ssl.SSLContext | None],
        answering: threading.Event,
    ) -> None:
        super().__init__(config)
        self._tls = tls
        self._answering = answering
        self._caps = caps
        self._counts = counts
        self._patience = patience

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # One for all: callers are counted wherever they come in.
        self.servers = [self._acceptor(sockets or ())]  # type: ignore[list-item]  # it is closed alike
        self.started = True
        self._answering.set()

    def _acceptor(self, listening: Sequence[socket.socket]) -> Acceptor:
        return Acceptor(
            listening,
            self._connect,
            caps=self._caps,
            refusals=self._counts.refusals,
            tls=self._tls,
            handshake=self._patience.handshake,
        )

    def _connect(self, ended: Callable[[], None]) -> OperatorConnection:
        return OperatorConnection(
            ended=ended,
            counts=self._counts,
            patience=self._patience,
            config=self.config,
            server_state=self.server_state,
            app_state={},
        )
