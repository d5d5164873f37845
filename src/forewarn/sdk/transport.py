"""How requests leave this machine: what both clients set on their HTTP library."""

import ssl

import httpx

from forewarn.sdk.answers import Answer
from forewarn.sdk.conversation import EVENTS_PATH, Ask, Silence
from forewarn.sdk.errors import NoEndpoint

LAST_PORT = 65535
CONNECT_SECONDS = 5.0
# A document of a thousand events has less; what is longer is something else.
LONGEST_BODY = 4 * 1024 * 1024

# Not through a compressing or caching thing, and known as what it is.
HEADERS = {"Metadata": "true", "Accept-Encoding": "identity", "User-Agent": "forewarn"}


def base_url(url: str) -> str:
    """Make the URL of an endpoint out of what people write: with or without `http://`, and with the path."""
    whole = url.strip() if "://" in url else f"http://{url.strip()}"
    try:
        parts = httpx.URL(whole)
    except httpx.InvalidURL:
        parts = httpx.URL("")
    sound = parts.scheme in ("http", "https") and parts.host and (parts.port or 80) <= LAST_PORT
    if not sound or any(each.isspace() for each in whole):
        raise NoEndpoint(f"{url!r} is no address of an endpoint: expected http://HOST or http://HOST:PORT")
    path = parts.path.rstrip("/")
    if path.lower().endswith(EVENTS_PATH):
        path = path[: -len(EVENTS_PATH)]
    return f"{parts.scheme}://{parts.netloc.decode()}{path}"


def trusted(url: str) -> ssl.SSLContext | bool:
    """Say which certificates count. Plain HTTP needs none, and reading them takes longer than a poll."""
    return True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def timeout(ask: Ask) -> httpx.Timeout:
    """Give an answer the time that it may take; a connection is made at once or not at all."""
    return httpx.Timeout(ask.seconds, connect=CONNECT_SECONDS)


def longest(ask: Ask) -> float:
    """Say how long all of it may take: the library counts anew with each byte that comes of a header."""
    return ask.seconds + CONNECT_SECONDS


class Body:
    """The body of an answer, as it comes: not for ever, and not without end."""

    def __init__(self, *, deadline: float) -> None:
        self._deadline = deadline
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, part: bytes, *, now: float) -> None:
        """Take what has come."""
        self._length += len(part)
        if self._length > LONGEST_BODY:
            raise httpx.ReadError("it answers without end")
        if now > self._deadline:
            raise httpx.ReadTimeout("")
        self._parts.append(part)

    def whole(self) -> bytes:
        """Return all of it."""
        return b"".join(self._parts)


def answer(response: httpx.Response, body: Body, *, sent: float, received: float) -> Answer:
    """Turn a response into what talks are told."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(
        status=response.status_code, headers=headers, body=body.whole(), sent=sent, received=received
    )


def silence(error: Exception, url: str, *, sent: float, received: float) -> Silence:
    """Say in words why nobody answered."""
    match error:
        case httpx.ConnectTimeout() | httpx.ConnectError():
            said = f"nothing listens there ({error})" if str(error) else "nothing listens there"
        case httpx.TimeoutException():
            said = "it takes too long to answer"
        case _:
            said = str(error) or type(error).__name__
    return Silence(why=f"no metadata endpoint answers at {url}: {said}", sent=sent, received=received)
