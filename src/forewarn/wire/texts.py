"""Texts that others wrote: read into the spelling in which they are compared, shown in refusals and logs."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Any

from forewarn.core.errors import Invalid
from forewarn.core.text_formats import closest, on_one_line

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
# Below these, people need not be told how grave it is.
_PLAIN = frozenset({"debug", "info"})
# Where a field that is not quoted would seem to end, or another to begin.
_UNCLEAR = re.compile(r'[ "=\n]')
# What is longer is shown shortened.
LONGEST_SHOWN = 256
# A longer list of words is not read through.
_MANY = 10
EXPECTED_TIME = "expected a time such as 2026-01-31T12:00:00Z"


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


def canonical(address: str) -> str:
    """Spell an address the one way in which addresses are compared.

    A zone is left out, and an IPv4 address that came through an IPv6 socket is an IPv4 address.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
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


def is_guid(text: str) -> bool:
    """Return whether a text is a whole GUID."""
    return GUID.fullmatch(text) is not None


def write_time(moment: datetime) -> str:
    """Write a moment with Z, and with a fraction of a second only where there is one."""
    written = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{written.rstrip('0') if '.' in written else written}Z"


def read_time(text: str) -> datetime:
    """Read a moment; one without an offset could be anywhere's, so it is refused."""
    # In a query an offset's plus sign arrives as a blank when it was not escaped.
    given = text.replace(" ", "+") if "T" in text.upper() else text
    try:
        moment = datetime.fromisoformat(given)
        utc = moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        utc = None
    if utc is None:
        raise Invalid(f"{EXPECTED_TIME}, got {text!r}")
    return utc


def not_among(known: Iterable[str], value: object) -> str:
    """Return which words may stand there or, of many, which may have been meant."""
    words = tuple(known)
    meant = closest(value, words) if isinstance(value, str) else None
    if meant is not None and len(words) > _MANY:
        return f"there is no {shown(value)}; did you mean {meant}?"
    question = "" if meant is None else f"; did you mean {meant}?"
    return f"expected {either(words)}, got {shown(value)}{question}"


def either(words: Iterable[str]) -> str:
    """List words as a person would."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: object) -> str:
    """Show what was written, shortened if it is long."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    written = json.dumps(value, default=str)
    return written if len(written) <= LONGEST_SHOWN else f"{written[:LONGEST_SHOWN]}…"


class LogForm(StrEnum):
    """How lines look."""

    TEXT = "text"
    JSON = "json"


def log_line(
    form: LogForm, *, at: datetime, level: str, message: str, fields: Mapping[str, Any], trace: str = ""
) -> str:
    """Write a line; fields that are None are left out, and the lines of a stack trace follow a text."""
    if form is LogForm.JSON:
        said = {name: value for name, value in fields.items() if value is not None}
        head = {"at": at.isoformat(timespec="milliseconds"), "level": level}
        return json.dumps(
            {**head, "message": message + (f"\n{trace}" if trace else ""), **said}, ensure_ascii=False
        )
    grave = "" if level in _PLAIN else f"{level}: "
    text = f"{at:%Y-%m-%d %H:%M:%SZ} {grave}{named(message, fields)}"
    return f"{text}\n{trace}" if trace else text


def named(message: str, fields: Mapping[str, Any]) -> str:
    """Write a message and its fields, for people: `order-placed order=… by=…`."""
    said = (f" {name}={_quoted(value)}" for name, value in fields.items() if value is not None)
    # On one line, whatever a caller or a program has said: it must not forge lines of ours.
    return on_one_line(f"{message}{''.join(said)}")


def _quoted(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or _UNCLEAR.search(text) else text
