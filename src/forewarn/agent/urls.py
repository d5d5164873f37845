"""URLs in a config."""

from urllib.parse import urlsplit

from forewarn.core.errors import Invalid
from forewarn.sdk.guest_errors import NoEndpoint
from forewarn.sdk.transport.endpoint_urls import base_url
from forewarn.wire.texts import shown


def url(value: object) -> str:
    """Read the URL of something that speaks HTTP, without showing it: it may be a secret."""
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        sound = parts is not None and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port beyond all ports, or brackets that do not close
        sound = False
    if not sound:
        raise Invalid("expected a URL that begins with http:// or https://")
    return str(value)


def endpoint(value: object) -> str:
    """Read the URL of a metadata endpoint, of which only scheme, host and port are for people to say."""
    try:
        found = base_url(url(value))
    except NoEndpoint as error:
        raise Invalid(str(error)) from None
    if urlsplit(found).path:
        raise Invalid(f"expected http://HOST or http://HOST:PORT, without a path, got {shown(value)}")
    return found
