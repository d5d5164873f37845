"""Texts of a certain form, each read into the one spelling in which it is compared: names, addresses, ids."""

import re
from ipaddress import IPv6Address, ip_address

from forewarn.core.errors import Invalid
from forewarn.wire.wording import shown

# The longest name a machine may have on Azure.
# Clients and proxies take `.` and `..` out of paths, also where they are percent-encoded.
NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")
NAME_RULE = "1 to 64 letters, digits, dots, underscores and hyphens, and not . or .."
LONGEST_TEXT = 256
# Pairs with colons or hyphens between them, threes of four with dots, or nothing between.
MAC = re.compile(
    r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(-[0-9A-Fa-f]{2}){5}"
    r"|[0-9A-Fa-f]{4}(\.[0-9A-Fa-f]{4}){2}|[0-9A-Fa-f]{12}"
)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
GUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_MAC_SEPARATORS = re.compile("[:.-]")


def read_name(value: object) -> str:
    """Read what something is called."""
    if not isinstance(value, str) or not is_name(value):
        raise Invalid(f"expected a name of {NAME_RULE}, got {shown(value)}")
    return value


def is_name(text_: str) -> bool:
    """Return whether something can be called so."""
    return NAME.fullmatch(text_) is not None


def read_text(value: object) -> str:
    """Read one line."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
        raise Invalid(f"expected one line of at most {LONGEST_TEXT} characters, got {shown(value)}")
    return value


def read_address(value: object) -> str:
    """Read an IPv4 or IPv6 address."""
    try:
        parsed = ip_address(value) if isinstance(value, str) else None
    except ValueError:
        parsed = None
    if parsed is None or (isinstance(parsed, IPv6Address) and parsed.scope_id is not None):
        raise Invalid(f"expected an IPv4 or IPv6 address, got {shown(value)}")
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped.compressed
    return parsed.compressed


def read_uri(value: object) -> str:
    """Read where a driver reaches a host."""
    written = read_text(value)
    scheme, _, rest = written.partition("://")
    if not SCHEME.fullmatch(scheme) or not rest or " " in rest:
        raise Invalid(f"expected a URI, as qemu+ssh://host-1/system, got {shown(value)}")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    if at and ":" in user:
        # What is declared is shown to operators, saved and copied into backups: no place for a secret.
        raise Invalid(
            "expected no password in it: keep that where the driver finds it by itself, as a key file"
        )
    return written


def read_mac(value: object) -> str:
    """Read a MAC address, in any usual spelling."""
    if not isinstance(value, str) or not MAC.fullmatch(value):
        raise Invalid(f"expected a MAC address, as 52:54:00:12:34:56, got {shown(value)}")
    digits = _MAC_SEPARATORS.sub("", value).lower()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def read_guid(value: object) -> str:
    """Read a UUID."""
    if not isinstance(value, str) or not GUID.fullmatch(value):
        raise Invalid(f"expected a UUID, as 4c4c4544-0051-4b10-8052-c8c04f4d4e32, got {shown(value)}")
    return value.lower()
