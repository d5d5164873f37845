"""Guests behind another metadata proxy, as OpenStack's: it says for which machine it calls, and signs that.

Such a proxy holds 169.254.169.254 itself and knows each caller by its port of the network. It passes on
method, path, query and body with headers of its own: `X-Instance-ID`, and `X-Instance-ID-Signature`, which is
the HMAC-SHA256 of the id with a secret that both know. So a request is whose id it carries, if the proxy is
the one that is expected and the signature is right, and the checks on headers that it does not pass on are
left out.
"""

import hashlib
import hmac
from asyncio import BaseTransport
from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.guest.board.board import Key
from forewarn.guest.board.members import Allowance, BoardMachine
from forewarn.guest.http.connection import Connection
from forewarn.guest.http.connections import OpenConnections
from forewarn.guest.http.refusals import Limit
from forewarn.guest.requests import Request, RequestFault

INSTANCE, SIGNATURE = b"x-instance-id", b"x-instance-id-signature"
NOBODY = "nobody"  # no machine's id


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedProxy:
    """Who may call for machines, and the secret that shows that it does."""

    addresses: frozenset[str]
    secret: bytes

    def machine_of(self, request: Request) -> str | None:
        """Return the id of the machine that a request is for; None if that is not shown."""
        named, signed = request.all(INSTANCE), request.all(SIGNATURE)
        if len(named) != 1 or len(signed) != 1:
            return None
        right = hmac.new(self.secret, named[0], hashlib.sha256).hexdigest().encode()
        return named[0].decode("latin-1").lower() if hmac.compare_digest(right, signed[0].lower()) else None


class ProxiedConnection(Connection):
    """A connection of a trusted proxy, on which each request may be another machine's."""

    __slots__ = ("_proxy",)

    def __init__(
        self, endpoint: OpenConnections, members: Mapping[Key, BoardMachine], *, proxy: TrustedProxy
    ) -> None:
        super().__init__(endpoint, members, key=NOBODY)
        self._proxy = proxy
        self.allowance = Allowance()  # the proxy's connections are nobody's in particular

    def connection_made(self, transport: BaseTransport) -> None:
        """Take up the connection of a proxy that is expected, and nobody else's."""
        super().connection_made(transport)
        if self.address not in self._proxy.addresses:
            self._connections.refusals.note(Limit.PROXY, f"{self.address} is no proxy of the settings")
            transport.abort()  # type: ignore[attr-defined]  # it is a socket's

    def data_received(self, data: bytes) -> None:
        """Read everything: equal bytes may not be remembered, for whose they are stands in them."""
        self._read(data)

    def _charge(self, member: BoardMachine | None) -> None:
        """Count no connection to a machine."""

    def _serve(self, item: Request | RequestFault, data: bytes | None) -> None:
        if isinstance(item, Request):
            self._key = self._proxy.machine_of(item) or NOBODY
            if self._key == NOBODY:
                self._connections.refusals.note(Limit.PROXY, f"{self.address} signs no machine's id rightly")
            item.fields.update({b"host": [b"localhost"], b"metadata": [b"true"]})
            item.fields.pop(b"x-forwarded-for", None)
        super()._serve(item, None)
