"""Guests behind a metadata proxy such as OpenStack's, which signs the id of the calling machine.

Such a proxy serves 169.254.169.254 and identifies callers by their network port. It forwards method, path,
query and body with two headers of its own. `X-Instance-ID` is the id of the machine, and
`X-Instance-ID-Signature` is the HMAC-SHA256 of the id with a shared secret. A request counts for that machine
if it comes from the configured proxy with a valid signature. Headers that the proxy does not forward are not
checked.
"""

import hashlib
import hmac
from asyncio import BaseTransport
from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.guest.board.board import Key
from forewarn.guest.board.members import Allowance, BoardMachine
from forewarn.guest.guest_requests import Request, RequestFault
from forewarn.guest.http.connection import Connection
from forewarn.guest.http.open_connections import OpenConnections
from forewarn.guest.http.refusals import Limit

INSTANCE, SIGNATURE = b"x-instance-id", b"x-instance-id-signature"
NO_MACHINE = "none"  # not a GUID, so no machine has this id


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedProxy:
    """The source addresses of a metadata proxy, and the secret that it signs with."""

    addresses: frozenset[str]
    secret: bytes

    def machine_of(self, request: Request) -> str | None:
        """Return the id of the machine that a request is for; None without a valid signature."""
        ids, signatures = request.all(INSTANCE), request.all(SIGNATURE)
        if len(ids) != 1 or len(signatures) != 1:
            return None
        expected = hmac.new(self.secret, ids[0], hashlib.sha256).hexdigest().encode()
        is_valid = hmac.compare_digest(expected, signatures[0].lower())
        return ids[0].decode("latin-1").lower() if is_valid else None


class ProxiedConnection(Connection):
    """A connection of a metadata proxy; each request may come from another machine."""

    __slots__ = ("_proxy",)

    def __init__(
        self, endpoint: OpenConnections, members: Mapping[Key, BoardMachine], *, proxy: TrustedProxy
    ) -> None:
        super().__init__(endpoint, members, key=NO_MACHINE)
        self._proxy = proxy
        self.allowance = Allowance()  # the connection counts towards no machine

    def connection_made(self, transport: BaseTransport) -> None:
        """Accept a connection from the configured proxy; abort any other."""
        super().connection_made(transport)
        if self.address not in self._proxy.addresses:
            self._connections.refusals.note(Limit.PROXY, f"{self.address} is not a configured proxy")
            transport.abort()  # type: ignore[attr-defined]  # a socket's transport has it

    def data_received(self, data: bytes) -> None:
        """Parse all data, without the cache: each request has to be authenticated."""
        self._read(data)

    def _charge(self, member: BoardMachine | None) -> None:
        """Do nothing: the connection counts towards no machine."""

    def _serve(self, item: Request | RequestFault, data: bytes | None) -> None:
        if isinstance(item, Request):
            self._key = self._proxy.machine_of(item) or NO_MACHINE
            if self._key == NO_MACHINE:
                self._connections.refusals.note(
                    Limit.PROXY, f"{self.address} sends a request without a valid signature of a machine's id"
                )
            item.fields.update({b"host": [b"localhost"], b"metadata": [b"true"]})
            item.fields.pop(b"x-forwarded-for", None)
        super()._serve(item, None)
