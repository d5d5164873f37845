"""Marks within texts: what operators wrote freely, and names in forewarn's own reasons.

A reason may name anything: hosts, people, other projects' machines. So it is marked where it comes in, and
the marks go with it into every text that is made of it, and into the store. The people of projects read a
sentence in its place; operators read it without the marks. These are the characters by which Unicode sets a
text apart that was put into another one, whatever language it is in: they have no width.

A reason of forewarn's may name machines of several projects, projects, and drivers. Each name is marked, so a
project reads its own names only, even if a name is an ordinary word or its machine has been removed.
"""

import re
from collections.abc import Container, Iterable

BEGIN, END = "\u2068", "\u2069"
# Begin a name; each ends with END.
MACHINE = "\u2066"
DRIVER = "\u2067"
PROJECT = "\u202a"
# What stands in the place of it.
NOT_FOR_PROJECTS = "(an operator's reason)"

_MARKS = re.compile(f"[{BEGIN}{MACHINE}{DRIVER}{PROJECT}{END}]")
# One that was cut off ends with the text.
_MARKED = re.compile(f"{BEGIN}.*?(?:{END}|$)", re.DOTALL)
_MACHINE = re.compile(f"{MACHINE}([^{END}]*)(?:{END}|$)")
_PROJECT = re.compile(f"(project )?{PROJECT}([^{END}]*)(?:{END}|$)")
_DRIVER = re.compile(f"{DRIVER}[^{END}]*(?:{END}|$)")


def mark_operator_text(text: str) -> str:
    """Mark a text as an operator's own."""
    return f"{BEGIN}{unmarked(text)}{END}" if text else text


def unmarked(text: str) -> str:
    """Return a text without marks: as operators read it, or as somebody has sent it."""
    return text if text.isascii() else _MARKS.sub("", text)


def without_operators_words(text: str) -> str:
    """Return a text as the people of projects may read it."""
    return _MARKED.sub(NOT_FOR_PROJECTS, text) if BEGIN in text else text


def machine_names(names: Iterable[str]) -> str:
    """List machines in a reason that people of several projects may read."""
    return ", ".join(f"{MACHINE}{name}{END}" for name in names)


def without_other_machines(text: str, own: Container[str], *, other: str) -> str:
    """Return a text in which each marked name that is not one's own is replaced."""
    if MACHINE not in text:
        return text
    return _MACHINE.sub(lambda found: found[1] if found[1] in own else other, text)


def project_name(name: str) -> str:
    """Return the name of a project for a reason that people of several projects may read."""
    return f"{PROJECT}{name}{END}"


def without_other_projects(text: str, own: str, *, other: str) -> str:
    """Return a text in which each marked name of a project that is not one's own is replaced."""
    if PROJECT not in text:
        return text
    return _PROJECT.sub(lambda found: f"{found[1] or ''}{own}" if found[2] == own else other, text)


def driver_named(name: str) -> str:
    """Return how a reason names a driver, which the people of projects do not read."""
    return f"{DRIVER}driver {name}{END}"


def without_drivers(text: str, *, other: str) -> str:
    """Return a text in which each driver that is named is replaced."""
    return _DRIVER.sub(other, text) if DRIVER in text else text
