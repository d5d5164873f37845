"""URLs in a config."""

from urllib.parse import urlsplit

from forewarn.core.errors import Invalid


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
