"""What somebody may have meant by a name that nothing has."""

import difflib
from collections.abc import Iterable


def closest(written: str, known: Iterable[str]) -> str | None:
    """Find the known name that looks most like what was written; None if none does."""
    found = difflib.get_close_matches(written, list(known), n=1)
    return found[0] if found else None


def hint(written: str, known: Iterable[str]) -> str:
    """Ask `; did you mean …?` at the end of a refusal, if there is something to ask."""
    meant = closest(written, known)
    return "" if meant is None else f"; did you mean {meant}?"
