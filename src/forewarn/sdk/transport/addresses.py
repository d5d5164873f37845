"""How requests leave this machine: what both clients keep to, each with its own HTTP library."""

import ssl
from urllib.parse import quote, urlsplit

from forewarn.sdk.calls import EVENTS_PATH, Silence
from forewarn.sdk.errors import NoEndpoint

CONNECT_SECONDS = 5.0
# A document of a thousand events has less; what is longer is something else.
LONGEST_BODY = 4 * 1024 * 1024

# Not through a compressing or caching thing, and known as what it is.
HEADERS = {"Metadata": "true", "Accept-Encoding": "identity", "User-Agent": "forewarn"}

# Why nobody answers.
TOO_LATE = "it takes too long to answer"
ENDLESS = "it answers without end"

CLOSED = "the client was closed"

# What a path may hold as it is (RFC 3986); % as well, of what was encoded before.
PLAIN = "/:@!$&'()*+,;=~%"


class NoAnswer(Exception):
    """Nobody answers; the message says why."""


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
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{place}{'' if port is None else f':{port}'}{quote(path, safe=PLAIN)}"


def trusted(url: str) -> ssl.SSLContext:
    """Say which certificates count. Plain HTTP needs none, and reading them takes longer than a poll."""
    if not url.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    import httpx  # which brings them

    return httpx.create_ssl_context(trust_env=False)


def nobody(why: str = "") -> str:
    """Say that no connection could be made."""
    return f"nothing listens there ({why})" if why else "nothing listens there"


def unknown_name(why: str) -> str:
    """Say that nobody knows where the host of that name is."""
    return f"no host of that name can be found ({why})"


def silence(why: str, url: str, *, sent: float, received: float) -> Silence:
    """Say in words that nobody answered."""
    return Silence(why=f"no metadata endpoint answers at {url}: {why}", sent=sent, received=received)
