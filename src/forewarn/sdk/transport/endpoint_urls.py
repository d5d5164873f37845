"""URLs of endpoints, and the certificates to trust."""

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from forewarn.sdk.guest_errors import NoEndpoint

if TYPE_CHECKING:
    from ssl import SSLContext

EVENTS_PATH = "/metadata/scheduledevents"

# Characters that a path may contain (RFC 3986), and %, for parts that are already encoded.
PLAIN = "/:@!$&'()*+,;=~%"


def base_url(url: str) -> str:
    """Normalize the URL of an endpoint, which may lack `http://` and may include the events path."""
    whole = url.strip() if "://" in url else f"http://{url.strip()}"
    wrong = NoEndpoint(f"{url!r} is not the address of an endpoint: expected http://HOST or http://HOST:PORT")
    try:
        parts = urlsplit(whole)
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
    except ValueError:  # a port out of range, an unclosed bracket, an invalid host name
        raise wrong from None
    odd = parts.scheme not in ("http", "https") or "@" in parts.netloc
    if odd or not host or " " in whole or not whole.isprintable():
        raise wrong
    path = parts.path.rstrip("/")
    if path.lower().endswith(EVENTS_PATH):
        path = path[: -len(EVENTS_PATH)]
    bracketed = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{bracketed}{'' if port is None else f':{port}'}{quote(path, safe=PLAIN)}"


def tls_context(url: str) -> "SSLContext | None":
    """Load the trusted certificates, but only for HTTPS: loading takes longer than a poll."""
    if not url.startswith("https:"):
        return None
    import ssl

    import certifi

    return ssl.create_default_context(cafile=certifi.where())
