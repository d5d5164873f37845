"""Where a metadata endpoint is: its URL, out of what people write, and the certificates that it may show."""

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from forewarn.sdk.guest_errors import NoEndpoint

if TYPE_CHECKING:
    from ssl import SSLContext

EVENTS_PATH = "/metadata/scheduledevents"

# What a path may hold as it is (RFC 3986); % as well, of what was encoded before.
PLAIN = "/:@!$&'()*+,;=~%"


def base_url(url: str) -> str:
    """Make the URL of an endpoint out of what people write: with or without `http://`, and with the path."""
    whole = url.strip() if "://" in url else f"http://{url.strip()}"
    wrong = NoEndpoint(f"{url!r} is no address of an endpoint: expected http://HOST or http://HOST:PORT")
    try:
        parts = urlsplit(whole)
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
    except ValueError:  # a port beyond all ports, brackets that do not close, what can be no name
        raise wrong from None
    odd = parts.scheme not in ("http", "https") or "@" in parts.netloc
    if odd or not host or " " in whole or not whole.isprintable():
        raise wrong
    path = parts.path.rstrip("/")
    if path.lower().endswith(EVENTS_PATH):
        path = path[: -len(EVENTS_PATH)]
    bracketed = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{bracketed}{'' if port is None else f':{port}'}{quote(path, safe=PLAIN)}"


def trusted(url: str) -> "SSLContext | None":
    """Load the certificates that count; plain HTTP needs none, and loading them takes longer than a poll."""
    if not url.startswith("https:"):
        return None
    import ssl

    import certifi

    return ssl.create_default_context(cafile=certifi.where())
