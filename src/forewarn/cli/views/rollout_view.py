"""Rollouts as people see them: a row of a list, the waves of one, a plan drawn as a timeline."""

from datetime import datetime
from typing import Any

from forewarn.cli import formatting, terminal
from forewarn.cli.session import Session
from forewarn.cli.views.order_view import show_waiting
from forewarn.core.moments import format_span_briefly

LIST = terminal.TableLayout(
    columns=("ROLLOUT", "ACTION", "STATE", "HOSTS", "WAVES", "BEGUN", "BY", "WHY"),
    wraps=("WHY",),
    spare=("BY", "BEGUN"),
)
WAVES = terminal.TableLayout(
    columns=("WAVE", "STATE", "HOSTS", "ANNOUNCED", "STARTED", "ENDED"), wraps=("HOSTS",)
)
TIMELINE = terminal.TableLayout(
    columns=("WAVE", "HOSTS", "ANNOUNCED", "STARTS BY", "ENDS ABOUT", "TIMELINE"), wraps=("HOSTS",)
)
WIDTH = 40
NOTICE, WORK = "·", "█"
IDLE = "nothing to do there"
# A thousand hosts would fill the screen with their turns; JSON has them all.
MOST_REASONS = 20


def row(rollout: dict[str, Any]) -> tuple[object, ...]:
    """Make a rollout a line of the list."""
    return (
        terminal.short(rollout["id"]),
        rollout["action"],
        formatting.rollout_state(rollout),
        len(rollout["hosts"]),
        _progress(rollout),
        formatting.at(rollout["created_at"]),
        rollout["by"],
        rollout["why"] or rollout["reason"],
    )


def _progress(rollout: dict[str, Any]) -> str:
    done = sum(wave["state"] == "done" for wave in rollout["waves"])
    return f"{done} of {len(rollout['waves'])} done"


def show(rollout: dict[str, Any]) -> None:
    """Show one: what it is, its waves, and what it waits for."""
    terminal.details(
        [
            ("rollout", rollout["id"]),
            ("action", rollout["action"]),
            ("state", formatting.rollout_state(rollout)),
            ("waves", _progress(rollout)),
            ("by", rollout["by"]),
            ("reason", rollout["reason"]),
            ("begun", formatting.at(rollout["created_at"])),
            ("ended", formatting.at(rollout["ended_at"])),
            ("deadline", formatting.at(rollout["deadline"])),
            ("health", _health(rollout)),
            ("given up", rollout["given_up"]),
            ("why", rollout["why"]),
            ("notice", formatting.notice(rollout["notice"])),
        ]
    )
    terminal.echo()
    rows = (
        (
            number,
            wave["state"],
            wave["hosts"],
            _known_or_about(wave["announced_at"], wave["announce_at"]),
            _known_or_about(wave["started_at"], wave["start_at"]),
            _known_or_about(wave["ended_at"], wave["end_at"]),
        )
        for number, wave in enumerate(rollout["waves"], start=1)
    )
    terminal.table(WAVES, rows, empty="No waves.")
    _show_reasons(rollout)


def _known_or_about(known: str | None, expected: str | None) -> str | None:
    """Write when something was or, before that, about when it will be."""
    return formatting.at(known) if known or not expected else f"about {formatting.at(expected)}"


def _health(rollout: dict[str, Any]) -> str:
    polls = ", and has polled again if it did before" if rollout["require_poll"] else ""
    return f"a machine is healthy within {format_span_briefly(rollout['health_seconds'])} of its work{polls}"


def show_started(session: Session, rollout: dict[str, Any]) -> None:
    """Show what has been begun, and how to follow it."""
    show(rollout)
    _show_warnings(rollout)
    terminal.echo(
        f"\n  Follow it:  {session.command('rollout show ' + terminal.short(rollout['id']) + ' --follow')}"
    )


def show_plan(rollout: dict[str, Any]) -> None:
    """Draw a plan, wave by wave."""
    waves = rollout["waves"]
    # Waves that no window has room for after the others have no known end.
    first, last = _time(waves[0]["announce_at"]), _time(rollout["ends_at"] or waves[0]["end_at"])
    rows = (
        (
            number,
            wave["hosts"],
            formatting.at(wave["announce_at"]),
            formatting.at(wave["start_at"]),
            formatting.at(wave["end_at"]),
            _bar(wave, first, last),
        )
        for number, wave in enumerate(waves, start=1)
    )
    terminal.table(TIMELINE, rows, empty="")
    count = f"{len(waves)} wave{'s' if len(waves) != 1 else ''}"
    length = formatting.between(waves[0]["announce_at"], rollout["ends_at"])
    legend = f"({NOTICE} notice, {WORK} work)"
    disturbs = any(wave["stages"] for wave in waves)
    terminal.echo(
        f"\n{count}, {length} if nobody approves early {legend}." if disturbs else f"\n{count}: {IDLE}."
    )
    _show_reasons(rollout)
    _show_warnings(rollout)


def _bar(wave: dict[str, Any], first: datetime, last: datetime) -> str:
    """Draw one wave's share of the whole time; one that disturbs no machine takes none."""
    if not wave["stages"]:
        return IDLE
    whole = (last - first).total_seconds() or 1.0
    drawn = ""
    for stage in wave["stages"]:
        at, start, end = (
            round(WIDTH * (_time(stage[moment]) - first).total_seconds() / whole)
            for moment in ("announce_at", "start_at", "end_at")
        )
        drawn = drawn.ljust(at) + NOTICE * (start - max(at, len(drawn)))
        drawn += WORK * max(end - len(drawn), 1)
    return drawn


def _show_reasons(rollout: dict[str, Any]) -> None:
    if not rollout["waiting"]:
        return
    terminal.echo("\nWaiting:")
    show_waiting({"waiting": rollout["waiting"][:MOST_REASONS]})
    if len(rollout["waiting"]) > MOST_REASONS:
        terminal.echo(f"  … and {len(rollout['waiting']) - MOST_REASONS} more (--json has all)")


def _show_warnings(rollout: dict[str, Any]) -> None:
    if rollout["warnings"]:
        terminal.echo("\nWarnings:")
    for warning in rollout["warnings"]:
        terminal.echo(f"  {warning}")


def _time(moment: str) -> datetime:
    return datetime.fromisoformat(moment)
