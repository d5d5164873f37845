"""The parser of requests: httptools with limits."""

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from forewarn.guest.guest_requests import NOTHING, Request, RequestFault
from forewarn.guest.settings import Limits

UNREADABLE = RequestFault(400, "Bad request. The request is not HTTP/1.1")
HEAD_TOO_LARGE = RequestFault(431, "The request line and headers are too large")
BODY_TOO_LARGE = RequestFault(413, "The body is too large")
TOO_MANY = RequestFault(503, "Too many requests wait for their answers", retry=True)

# The parser also accepts older and newer versions, which frame messages differently.
READABLE = ("1.0", "1.1")
# A chunk of one byte takes six bytes. More bytes than that for each byte of the body count as padding.
CHUNK_OVERHEAD = 6


class _Refused(Exception):
    """Aborts the parser from one of its callbacks."""


class RequestParser:
    """Parses the requests of one connection; `partial` is True while a request is incomplete."""

    __slots__ = (
        "_arrived",
        "_body",
        "_fault",
        "_head_bytes",
        "_head_done",
        "_headers",
        "_limits",
        "_over",
        "_parser",
        "_replaying",
        "_request",
        "_upgrading",
        "_weight",
        "partial",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parser = HttpRequestParser(self)
        self._over = False  # the last request or a fault has been returned
        self._replaying = False
        self._arrived: list[Request | RequestFault] = []
        self.partial = False
        self._start()

    def _start(self) -> None:
        self._request = Request()
        self._body = bytearray()
        self._head_bytes = 0
        self._headers = 0
        self._head_done = False
        self._upgrading = False
        self._weight = 0  # all bytes of this request so far
        self._fault = UNREADABLE

    @property
    def expects_continue(self) -> bool:
        """Whether the client waits for 100 Continue before it sends the body."""
        if not (self.partial and self._head_done):
            return False
        return any(value.lower() == b"100-continue" for value in self._request.all(b"expect"))

    def continue_sent(self) -> None:
        """Note that the client has been sent 100 Continue."""
        del self._request.fields[b"expect"]

    def stop(self) -> None:
        """Ignore all further data."""
        self._over = True
        self.partial = False

    def feed(self, data: bytes) -> list[Request | RequestFault]:
        """Parse data; return the requests that it completes, and at most one fault as the last element."""
        arrived = self._arrived = []
        if self.partial:
            self._weight += len(data)
        try:
            self._parse(data)
        except HttpParserCallbackError:
            self._fail(self._fault)
        except HttpParserError:
            self._fail(UNREADABLE)
        else:
            self._weigh(len(data))
        return arrived

    def _parse(self, data: bytes) -> None:
        """Parse all data, even after a request for an upgrade, where the parser stops."""
        while data and not self._over:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                self._decline_upgrade()
            else:
                return

    def _decline_upgrade(self) -> None:
        """Continue as if the request asked for no upgrade. Java clients ask for one even with a body.

        The parser treats the data after such a head as another protocol. A new parser gets a head with the
        same framing of the body instead.
        """
        framing = (b"content-length", b"transfer-encoding")
        lines = [name + b": " + value for name in framing for value in self._request.all(name)]
        self._upgrading = False
        self._parser = HttpRequestParser(self)
        self._replaying = True
        self._parser.feed_data(b"\r\n".join((b"POST / HTTP/1.1", *lines, b"", b"")))
        self._replaying = False

    def _weigh(self, size: int) -> None:
        """Refuse a request whose incomplete part grows without limit."""
        if not self.partial:
            return
        if self._weight == 0 and not self._arrived:
            self._weight = size
        limits = self._limits
        if not self._head_done and self._weight > limits.head_bytes:
            self._fail(HEAD_TOO_LARGE)
        elif self._weight > 2 * limits.head_bytes + CHUNK_OVERHEAD * limits.body_bytes:
            self._fail(BODY_TOO_LARGE)

    def _fail(self, fault: RequestFault) -> None:
        if not self._over:
            self.stop()
            self._arrived.append(fault)

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes:
            self._refuse(HEAD_TOO_LARGE)

    def _refuse(self, fault: RequestFault) -> None:
        self._fault = fault
        raise _Refused

    # The parser calls these methods. They ignore a replayed head.

    def on_message_begin(self) -> None:
        """Start a request."""
        if not self._replaying:
            self._start()
            self.partial = True

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request target."""
        if not self._replaying:
            self._request.target += url
            self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer counts towards the limits but is ignored."""
        if self._replaying:
            return
        self._headers += 1
        if self._headers > self._limits.headers:
            self._refuse(HEAD_TOO_LARGE)
        self._count_head(len(name) + len(value) + len(": \r\n"))
        if not self._head_done:
            self._request.fields.setdefault(name.lower(), []).append(value)

    def on_headers_complete(self) -> None:
        """Take the head, and refuse a body that is declared too large."""
        if self._replaying:
            return
        request, parser = self._request, self._parser
        request.method = parser.get_method()
        version = parser.get_http_version()
        if version not in READABLE:
            self._refuse(UNREADABLE)
        request.http11 = version == "1.1"
        request.keep_alive = parser.should_keep_alive() and request.method != b"CONNECT"
        self._head_done = True
        self._upgrading = parser.should_upgrade()
        self._count_head(len(request.method) + len("  HTTP/1.1\r\n\r\n"))
        # The parser has checked that each length is one number in range.
        if any(int(length) > self._limits.body_bytes for length in request.all(b"content-length")):
            self._refuse(BODY_TOO_LARGE)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._body += body
        if len(self._body) > self._limits.body_bytes:
            self._refuse(BODY_TOO_LARGE)

    def on_message_complete(self) -> None:
        """Return the request, unless the parser stopped before its body because of an upgrade."""
        if self._upgrading:
            return
        if len(self._arrived) == self._limits.pipelined:
            self._refuse(TOO_MANY)
        request, self._request = self._request, NOTHING
        request.body, self._body = bytes(self._body), bytearray()
        self._arrived.append(request)
        self._over = not request.keep_alive
        self.partial = False
