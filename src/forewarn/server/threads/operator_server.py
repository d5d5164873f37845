"""The operator port: TLS, the console and the API, and uvicorn on its own thread and loop."""

import socket
import ssl
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import uvicorn
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from forewarn.api.middleware import address_middleware
from forewarn.config import OperatorSettings
from forewarn.console.console_app import NO_SNIFFING, SECURITY_HEADERS, ConsoleApp, WithSecurityHeaders
from forewarn.console.console_paths import is_console
from forewarn.core.errors import Invalid
from forewarn.server.threads.acceptor import Acceptor, Caps
from forewarn.server.threads.operator_connection import OperatorConnection, PortCounts, Timeouts
from forewarn.supervision import BackgroundTask, Supervisor


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Two PEM files; the certificate file may also hold the certificates of the chain."""

    certificate: str
    key: str

    def context(self) -> ssl.SSLContext:
        """Read the files; raise Invalid if they cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without a password, OpenSSL asks for the passphrase of a key at the terminal and blocks.
            context.load_cert_chain(self.certificate, self.key, password="")
        except OSError as error:  # the base class of ssl.SSLError, too
            reason = error.strerror if type(error) is not ssl.SSLError and error.strerror else error
            raise Invalid(
                f"[operator] certificate {self.certificate} and key {self.key} cannot be used: {reason}"
            ) from None
        return context


def tls_of(settings: OperatorSettings) -> Tls | None:
    """Return the configured TLS files; None if TLS is off."""
    certificate, key = settings.certificate, settings.key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Invalid("[operator] certificate and key: expected both or neither")
    return Tls(certificate=certificate, key=key)


# Shorter answers fit into one or two packets.
COMPRESSED_FROM = 2048
# A list of 1,000 machines shrinks to a thirteenth in two milliseconds; higher levels gain little.
COMPRESSION = 6


def operator_app(api: ASGIApp, *, names: Collection[str], origins: Collection[str] = ()) -> ASGIApp:
    """Serve the console and the API; guard the console's Host and Origin as the API guards its own."""
    console: ASGIApp = ConsoleApp()
    for guard, given, options in reversed(address_middleware(names=names, origins=origins)):
        console = guard(console, *given, **options)
    console = WithSecurityHeaders(console, SECURITY_HEADERS)
    api = GZipMiddleware(api, COMPRESSED_FROM, COMPRESSION)
    api = WithSecurityHeaders(api, NO_SNIFFING)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        target = console if scope["type"] == "http" and is_console(scope["path"]) else api
        await target(scope, receive, send)

    return app


class OperatorServer:
    """Serves the app on bound sockets."""

    def __init__(
        self,
        app: ASGIApp,
        bound: Sequence[socket.socket],
        *,
        caps: Caps,
        counts: PortCounts,
        tls: ssl.SSLContext | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._config = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            # By default uvicorn trusts `X-Forwarded-For` and `-Proto` of local callers, who could spoof them.
            proxy_headers=False,
            # Open streams must not delay the end of the program.
            timeout_graceful_shutdown=3,
        )
        self._sockets = bound
        self._caps = caps
        self._counts = counts
        self._timeouts = timeouts or Timeouts()
        self._tls = tls  # owner: the thread that reloads settings; every new connection reads it
        self._is_answering = threading.Event()
        # `stop` writes `_is_ending` and then reads `_server`; the operator thread does the reverse.
        self._is_ending = False  # owner: the thread that calls `stop`, which sets it once
        self._server: _Server | None = None  # owner: the operator thread
        self._thread: threading.Thread | None = None  # owner: the guest loop

    def start(self, supervisor: Supervisor) -> None:
        """Start the thread; return when the port answers."""
        self._thread = threading.Thread(
            target=self._serve, args=(supervisor,), name="forewarn-operator", daemon=True
        )
        self._thread.start()
        self._is_answering.wait()

    def replace_tls(self, tls: ssl.SSLContext) -> None:
        """Use another certificate for new connections."""
        self._tls = tls

    def stop(self) -> None:
        """Finish open requests and end the thread."""
        self._is_ending = True
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def _serve(self, supervisor: Supervisor) -> None:
        try:
            supervisor.run(BackgroundTask.OPERATOR_PORT, self._run)
        finally:
            self._is_answering.set()
            for each in self._sockets:
                each.close()

    def _run(self) -> None:
        """Serve until `stop`, on copies of the sockets, because uvicorn closes the sockets that it gets."""
        server = _Server(self._config, self._accept)
        self._server = server  # before the check of `_is_ending`, so that `stop` finds it
        copies = [each.dup() for each in self._sockets]
        try:
            if not self._is_ending:
                server.run(sockets=copies)
        finally:
            for each in copies:
                each.close()

    def _accept(self, sockets: Sequence[socket.socket], state: ServerState) -> Acceptor:
        # One acceptor for all sockets, because the limits apply to the callers of all of them.
        acceptor = Acceptor(
            sockets,
            partial(
                OperatorConnection,
                counts=self._counts,
                timeouts=self._timeouts,
                config=self._config,
                server_state=state,
                app_state={},
            ),
            caps=self._caps,
            refusals=self._counts.refusals,
            tls=lambda: self._tls,
            handshake=self._timeouts.handshake,
        )
        self._is_answering.set()
        return acceptor


class _Server(uvicorn.Server):
    """A uvicorn server that accepts connections through `Acceptor`."""

    def __init__(
        self, config: uvicorn.Config, accept: Callable[[Sequence[socket.socket], ServerState], Acceptor]
    ) -> None:
        super().__init__(config)
        self._accept = accept

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        acceptor = self._accept(sockets or (), self.server_state)
        self.servers = [acceptor]  # type: ignore[list-item]  # it has the methods that uvicorn calls
        self.started = True
