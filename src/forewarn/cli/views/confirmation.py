"""Confirmations of commands that cannot be undone, or that affect many machines."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from forewarn.cli import formatting
from forewarn.cli.command_group import flag
from forewarn.cli.options import path_of
from forewarn.cli.session import Session
from forewarn.cli.views.order_view import machines_of, name_order
from forewarn.client.replies import RequestRefused
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.fleet_answers import HostWithMachinesAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer

# A rollout over more hosts needs a confirmation.
MANY_HOSTS = 5
MOST_NAMES = 10

YES = flag("--yes", "Skip the confirmation at a terminal.")
# For commands that `confirm`.
SURE = flag("--yes", "Skip the confirmation. Required without a terminal.")

NOTHING_CHANGED = "nothing was changed"


def ask_before_failing(session: Session, host: str, *, yes: bool) -> None:
    """Ask before a host is reported as failed."""

    def question() -> str:
        machines = _machines_on(session, host)
        recover = "recovers" if len(machines) == 1 else "recover"
        return f"Has {host} failed? Then {_named(machines)} {recover} on other hosts, without notice."

    ask_at_terminal(question, yes=yes)


def ask_before_emergency(session: Session, host: str, body: Mapping[str, Any], *, yes: bool) -> None:
    """Ask before an emergency gives guests less than the promised notice."""

    def question() -> str | None:
        if body["emergency"] is None:
            return None
        notice = body.get("notice_seconds")
        given = f"only {format_span_briefly(notice)} of notice" if notice else "no notice"
        return f"Emergency on {host}: give {_named(_machines_on(session, host))} {given}?"

    ask_at_terminal(question, yes=yes)


def ask_before_rollout(session: Session, body: dict[str, Any], *, yes: bool) -> None:
    """Ask before a rollout over many hosts."""

    def question() -> str | None:
        if body["hosts"] != "all" and len(body["hosts"]) <= MANY_HOSTS:
            return None
        plan = session.client.post("/v1/rollouts", RolloutAnswer, body | {"dry_run": True}).value
        if len(plan.hosts) <= MANY_HOSTS:
            return None
        waves = formatting.counted(len(plan.waves), "wave")
        until = f", until about {formatting.utc(plan.ends_at)}" if plan.ends_at else ""
        return f"Roll {plan.action} over {len(plan.hosts)} hosts, in {waves}{until}?"

    ask_at_terminal(question, yes=yes)


def ask_before_cancelling(order: OrderAnswer, *, yes: bool) -> None:
    """Ask before one event cancels an order on several machines."""
    machines = machines_of(order)
    question = f"Cancel {name_order(order)}, for all of {formatting.listing(machines)}?"
    ask_at_terminal(lambda: question if len(machines) > 1 else None, yes=yes)


def _machines_on(session: Session, host: str) -> Sequence[str]:
    return session.client.get(path_of("host", host), HostWithMachinesAnswer).value.machines


def _named(machines: Sequence[str]) -> str:
    count = formatting.counted(len(machines), "machine")
    shown = [*machines[:MOST_NAMES], *(["…"] if len(machines) > MOST_NAMES else [])]
    return f"its {count} ({', '.join(shown)})" if machines else "none of its machines"


def confirm(question: str, *, would: str, yes: bool) -> None:
    """Ask at a terminal; elsewhere refuse without --yes, to protect scripts from mistakes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise RequestRefused(f"{NOTHING_CHANGED}: this would {would}; use --yes to confirm")
    _ask(question)


def ask_at_terminal(question: Callable[[], str | None], *, yes: bool) -> None:
    """Ask at a terminal, unless the question is None; elsewhere continue without asking."""
    if not yes and is_at_terminal() and (asked := question()):
        _ask(asked)


def is_at_terminal() -> bool:
    """Return whether a person types and reads here, and no stream is redirected."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _ask(question: str) -> None:
    if not click.confirm(question, err=True):
        raise RequestRefused(NOTHING_CHANGED)
