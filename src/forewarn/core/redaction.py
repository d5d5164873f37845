"""Marks in texts that a project must not read in full: operators' free text, and names in reasons.

A reason may contain an operator's free text, which may name hosts, people or other projects' machines. Such a
text is marked at the point of entry, and the marks go with it into every other text and into the store.
Operators read the text without its marks; a project reads a placeholder.

A reason of forewarn may name machines of several projects, projects and drivers. Each name is marked, so a
project reads its own names only, even if a name is a common word or its machine was removed.

The marks are Unicode's directional isolates, which have no width.
"""

import re
from collections.abc import Container, Iterable

BEGIN, END = "\u2068", "\u2069"
# Begin a name; each ends with END.
MACHINE = "\u2066"
DRIVER = "\u2067"
PROJECT = "\u202a"
# The placeholder of an operator's text.
NOT_FOR_PROJECTS = "(an operator's reason)"

_MARKS = re.compile(f"[{BEGIN}{MACHINE}{DRIVER}{PROJECT}{END}]")
# A text may be cut off before its END.
_MARKED = re.compile(f"{BEGIN}.*?(?:{END}|$)", re.DOTALL)
_NAME = re.compile(
    f"{MACHINE}(?P<machine>[^{END}]*)(?:{END}|$)"
    f"|(?P<noun>project )?{PROJECT}(?P<project>[^{END}]*)(?:{END}|$)"
    f"|{DRIVER}[^{END}]*(?:{END}|$)"
)


def mark_operator_text(text: str) -> str:
    """Mark a text as an operator's own."""
    return f"{BEGIN}{unmarked(text)}{END}" if text else text


def unmarked(text: str) -> str:
    """Remove all marks: from a text for operators, or from input."""
    return text if text.isascii() else _MARKS.sub("", text)


def machine_names(names: Iterable[str]) -> str:
    """List machines in a reason that several projects may read."""
    return ", ".join(f"{MACHINE}{name}{END}" for name in names)


def project_name(name: str) -> str:
    """Return a project's name for a reason that several projects may read."""
    return f"{PROJECT}{name}{END}"


def driver_named(name: str) -> str:
    """Return a driver's name for a reason; projects do not read it."""
    return f"{DRIVER}driver {name}{END}"


def redact_operator_texts(text: str) -> str:
    """Replace operators' texts by a placeholder."""
    return _MARKED.sub(NOT_FOR_PROJECTS, text) if BEGIN in text else text


def redact_names(
    text: str, *, machines: Container[str], project: str, other_machine: str, other_project: str, driver: str
) -> str:
    """Replace all drivers' names, and the names of machines and projects that are not the reader's own."""

    def replacement(found: re.Match[str]) -> str:
        if found["machine"] is not None:
            return found["machine"] if found["machine"] in machines else other_machine
        if found["project"] is not None:
            return f"{found['noun'] or ''}{project}" if found["project"] == project else other_project
        return driver

    return text if text.isascii() else _NAME.sub(replacement, text)
