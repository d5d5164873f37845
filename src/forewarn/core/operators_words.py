"""What operators write freely, marked within the texts that it becomes part of.

A reason may name anything: hosts, people, other projects' machines. So it is marked where it comes in, and
the marks go with it into every text that is made of it, and into the store. The people of projects read a
sentence in its place; operators read it without the marks. These are the characters by which Unicode sets a
text apart that was put into another one, whatever language it is in: they have no width.
"""

import re

BEGIN, END = "\u2068", "\u2069"
# What stands in the place of it.
NOT_FOR_PROJECTS = "(an operator's reason)"

_MARKS = re.compile(f"[{BEGIN}{END}]")
# One that was cut off ends with the text.
_MARKED = re.compile(f"{BEGIN}.*?(?:{END}|$)", re.DOTALL)


def said_by_operator(text: str) -> str:
    """Mark a text as an operator's own."""
    return f"{BEGIN}{unmarked(text)}{END}" if text else text


def unmarked(text: str) -> str:
    """Return a text without marks: as operators read it, or as somebody has sent it."""
    return _MARKS.sub("", text) if BEGIN in text or END in text else text


def without_operators_words(text: str) -> str:
    """Return a text as the people of projects may read it."""
    return _MARKED.sub(NOT_FOR_PROJECTS, text) if BEGIN in text else text
