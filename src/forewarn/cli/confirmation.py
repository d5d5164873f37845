"""Confirmation of what cannot be undone, or reaches far."""

import sys
from collections.abc import Callable

import click

from forewarn.client.replies import RequestRefused

NOTHING_CHANGED = "nothing was changed"


def confirm(question: str, *, would: str, yes: bool) -> None:
    """Ask at a terminal; elsewhere refuse without --yes, so that no script does it by mistake."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise RequestRefused(f"{NOTHING_CHANGED}: this would {would}; say --yes if so")
    _ask(question)


def ask_at_terminal(question: Callable[[], str | None], *, yes: bool) -> None:
    """Ask where a person types and reads; elsewhere go on. A question that is None need not be asked."""
    if yes or not is_at_terminal():
        return
    if asked := question():
        _ask(asked)


def is_at_terminal() -> bool:
    """Return whether a person types and reads here; what is captured or piped is a program's."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _ask(question: str) -> None:
    if not click.confirm(question, err=True):
        raise RequestRefused(NOTHING_CHANGED)
