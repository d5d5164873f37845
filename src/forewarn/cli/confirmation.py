"""Confirmation of what cannot be undone."""

import sys

import typer

from forewarn.client.replies import RequestRefused


def confirm(question: str, *, would: str, yes: bool) -> None:
    """Ask at a terminal; elsewhere refuse without --yes, so that no script does it by mistake."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise RequestRefused(f"nothing was changed: this would {would}; say --yes if so")
    if not typer.confirm(question, err=True):
        raise RequestRefused("nothing was changed")
