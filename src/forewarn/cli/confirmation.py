"""Asking before something is done that cannot be undone."""

import sys

import typer

from forewarn.client.calls import RequestRefused


def ask(question: str, *, would: str, yes: bool) -> None:
    """Ask whoever sits at a terminal; where nobody does, only --yes will do, so that no script slips."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise RequestRefused(f"nothing was changed: this would {would}; say --yes if so")
    if not typer.confirm(question, err=True):
        raise RequestRefused("nothing was changed")
