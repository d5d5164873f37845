"""Ids as they are written: GUIDs, in any case."""

import re

_GUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def is_guid(text: str) -> bool:
    """Return whether a text is a whole GUID."""
    return _GUID.fullmatch(text) is not None
