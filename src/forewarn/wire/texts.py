"""Read texts into one spelling, show values in errors, and write log lines."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Any

from forewarn.core.errors import Invalid
from forewarn.core.text_formats import closest, on_one_line

# The maximum length is that of machine names on Azure. Clients and proxies remove `.` and `..` from paths.
NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")
NAME_RULE = "1 to 64 letters, digits, dots, underscores and hyphens, and not . or .."
LONGEST_TEXT = 256
# 00:11:22:33:44:55, 00-11-22-33-44-55, 0011.2233.4455 and 001122334455.
MAC = re.compile(
    r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(-[0-9A-Fa-f]{2}){5}"
    r"|[0-9A-Fa-f]{4}(\.[0-9A-Fa-f]{4}){2}|[0-9A-Fa-f]{12}"
)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
GUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_MAC_SEPARATORS = re.compile("[:.-]")
# Text logs do not show these levels.
_LEVELS_NOT_SHOWN = frozenset({"debug", "info"})
# Characters that make quotation marks around a log field necessary.
_UNCLEAR = re.compile(r'[ "=\n]')
# Errors cut longer values.
LONGEST_SHOWN = 256
# Errors do not list more values than this.
_MANY = 10
EXPECTED_TIME = "expected a time such as 2026-01-31T12:00:00Z"


def read_name(value: object) -> str:
    """Read a name."""
    if not isinstance(value, str) or not is_name(value):
        raise Invalid(f"expected a name of {NAME_RULE}, got {shown(value)}")
    return value


def is_name(text_: str) -> bool:
    """Return whether a text is a valid name."""
    return NAME.fullmatch(text_) is not None


def read_text(value: object) -> str:
    """Read a one-line text."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
        raise Invalid(f"expected one line of at most {LONGEST_TEXT} characters, got {shown(value)}")
    return value


def read_address(value: object) -> str:
    """Read an IPv4 or IPv6 address."""
    written = value if isinstance(value, str) and "%" not in value else ""
    try:
        ip_address(written)
    except ValueError:
        raise Invalid(f"expected an IPv4 or IPv6 address, got {shown(value)}") from None
    return canonical(written)


def canonical(address: str) -> str:
    """Return the canonical spelling of an address, without a zone.

    An IPv4-mapped IPv6 address becomes an IPv4 address.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.compressed


def read_uri(value: object) -> str:
    """Read the URI of a host."""
    written = read_text(value)
    scheme, _, rest = written.partition("://")
    if not SCHEME.fullmatch(scheme) or not rest or " " in rest:
        raise Invalid(f"expected a URI such as qemu+ssh://host-1/system, got {shown(value)}")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    if at and ":" in user:
        # Declarations are shown to operators, stored, and copied into backups.
        raise Invalid(
            "expected no password in the URI: use another credential of the driver, such as a key file"
        )
    return written


def read_mac(value: object) -> str:
    """Read a MAC address in any usual spelling."""
    if not isinstance(value, str) or not MAC.fullmatch(value):
        raise Invalid(f"expected a MAC address such as 52:54:00:12:34:56, got {shown(value)}")
    digits = _MAC_SEPARATORS.sub("", value).lower()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def read_guid(value: object) -> str:
    """Read a UUID."""
    if not isinstance(value, str) or not GUID.fullmatch(value):
        raise Invalid(f"expected a UUID such as 4c4c4544-0051-4b10-8052-c8c04f4d4e32, got {shown(value)}")
    return value.lower()


def is_guid(text: str) -> bool:
    """Return whether a text is a GUID."""
    return GUID.fullmatch(text) is not None


def write_time(moment: datetime) -> str:
    """Write a time with Z, and with fractions of a second only if there are any."""
    written = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{written.rstrip('0') if '.' in written else written}Z"


def read_time(text: str) -> datetime:
    """Read a time with Z or an offset."""
    # In a query string, an unescaped plus sign means a blank.
    given = text.replace(" ", "+") if "T" in text.upper() else text
    try:
        moment = datetime.fromisoformat(given)
        utc = moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        utc = None
    if utc is None:
        raise Invalid(f"{EXPECTED_TIME}, got {shown(text)}")
    return utc


def not_among(known: Iterable[str], value: object) -> str:
    """Return the error for an unknown value: the valid ones or, if they are many, the closest one."""
    words = tuple(known)
    meant = closest(value, words) if isinstance(value, str) else None
    if meant is not None and len(words) > _MANY:
        return f"there is no {shown(value)}; did you mean {meant}?"
    question = "" if meant is None else f"; did you mean {meant}?"
    return f"expected {either(words)}, got {shown(value)}{question}"


def either(words: Iterable[str]) -> str:
    """Return `a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: object) -> str:
    """Return a value as an error shows it, cut if it is long."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    written = json.dumps(value, default=str)
    return written if len(written) <= LONGEST_SHOWN else f"{written[:LONGEST_SHOWN]}…"


class LogForm(StrEnum):
    """The format of the log."""

    TEXT = "text"
    JSON = "json"


def log_line(
    form: LogForm, *, at: datetime, level: str, message: str, fields: Mapping[str, Any], trace: str = ""
) -> str:
    """Return a log line. Fields that are None are left out."""
    if form is LogForm.JSON:
        present = {name: value for name, value in fields.items() if value is not None}
        head = {"at": at.isoformat(timespec="milliseconds"), "level": level}
        return json.dumps(
            {**head, "message": message + (f"\n{trace}" if trace else ""), **present}, ensure_ascii=False
        )
    prefix = "" if level in _LEVELS_NOT_SHOWN else f"{level}: "
    text = f"{at:%Y-%m-%d %H:%M:%SZ} {prefix}{named(message, fields)}"
    return f"{text}\n{trace}" if trace else text


def named(message: str, fields: Mapping[str, Any]) -> str:
    """Return a message with its fields, for people: `order-placed order=… by=…`."""
    pairs = (f" {name}={_quoted(value)}" for name, value in fields.items() if value is not None)
    # On one line, so that a value cannot forge log lines.
    return on_one_line(f"{message}{''.join(pairs)}")


def _quoted(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or _UNCLEAR.search(text) else text
