"""Moments as JSON has them: RFC 3339."""

from datetime import UTC, datetime

from forewarn.core.errors import Invalid

EXPECTED_TIME = "expected a time such as 2026-01-31T12:00:00Z"


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
