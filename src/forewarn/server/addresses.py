"""Parsing of addresses in settings: `[::1]:8169`, `blue@10.0.0.1:80`, `https://forewarn.example`."""

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from forewarn.config import MetadataProxySettings
from forewarn.core.errors import Conflict, Invalid
from forewarn.guest.http.listeners import Listen, not_opened
from forewarn.guest.http.proxied import TrustedProxy
from forewarn.wire import authority
from forewarn.wire.texts import canonical

PORTS = 65536
OPEN_TO_ALL = (
    "expected a loopback address: without a token, anyone who reaches the port can do everything\n"
    "Create a token first: forewarn token create --role operator --name NAME --database URL"
)
# The name as browsers send it; an internationalized name begins with `xn--`.
_ORIGIN = re.compile(r"https://(?:[a-z0-9][a-z0-9._-]{0,252}|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
CHANGE_OPERATOR = "choose another with --operator, FOREWARN_OPERATOR_LISTEN or [operator] listen"


def guest_address(text: str) -> Listen:
    """Parse a listening address for guests; the name of a network may precede it, with an @."""
    network, _, address = text.rpartition("@")
    host, port = _split(address, text)
    return Listen(host=host, port=port, network=network)


def proxy_addresses(settings: MetadataProxySettings) -> list[Listen]:
    """Parse the listening addresses for a metadata proxy, and read the secret that identifies it."""
    if not settings.listen:
        return []
    proxy = TrustedProxy(addresses=_callers(settings.callers), secret=_secret(settings.secret_file))
    return [replace(guest_address(text), proxy=proxy) for text in settings.listen]


def _callers(texts: Sequence[str]) -> frozenset[str]:
    if not texts:
        raise Invalid("[metadata-proxy] callers: expected the source addresses of the proxy")
    for text in texts:
        try:
            ipaddress.ip_address(text)
        except ValueError:
            raise Invalid(
                f"[metadata-proxy] callers {text!r}: expected an address such as 10.0.0.2"
            ) from None
    return frozenset(map(canonical, texts))


def _secret(file: str | None) -> bytes:
    where = "[metadata-proxy] secret-file"
    if file is None:
        raise Invalid(f"{where}: expected the file with the secret that the proxy signs with")
    try:
        secret = Path(file).read_bytes().strip()
    except OSError as error:
        raise Invalid(f"{where} {file}: cannot be read ({error.strerror})") from None
    if not secret:
        raise Invalid(f"{where} {file}: is empty, so that any caller could act as any machine")
    return secret


def operator_address(text: str, *, guarded: Callable[[], bool] = lambda: False) -> tuple[str, int]:
    """Parse a listening address for operators; it must be loopback unless every call needs a token."""
    host, port = _split(text, text)
    if not is_loopback(host) and not guarded():
        raise Invalid(f"operator address {text}: {OPEN_TO_ALL}")
    return host, port


def public_origin(text: str, *, guarded: Callable[[], bool] = lambda: True) -> str:
    """Parse the origin of the service behind a proxy that terminates TLS; without tokens only loopback."""
    origin = text.lower()
    name, port = authority.with_port(origin.removeprefix("https://"), "https")
    if not _ORIGIN.fullmatch(origin) or not 0 < int(port) < PORTS:
        raise Invalid(
            f"[operator] origins {text!r}: expected https://NAME or https://NAME:PORT without a path; "
            "for plain http, set [operator] names instead"
        )
    if not is_loopback(name) and not guarded():
        raise Invalid(f"[operator] origins {text!r}: {OPEN_TO_ALL}")
    return f"https://{shown(name, int(port))}".removesuffix(f":{authority.DEFAULT_PORTS['https']}")


def bound(host: str, port: int) -> socket.socket:
    """Bind and listen early, so that a wrong address is reported before the server starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        what = f"operator address {shown(host, port)}"
        raise Conflict(not_opened(what, error, change=CHANGE_OPERATOR)) from error
    return listening


def shown(host: str, port: int) -> str:
    """Format an address for a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _split(address: str, text: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < PORTS):
        raise Invalid(f"address {text!r}: expected HOST:PORT such as 127.0.0.1:8169 or [::1]:8169")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
