"""Rollouts as people see them: a row of a list, the waves of one, a plan drawn as a timeline."""

from datetime import datetime
from typing import Any

from forewarn.cli import console, words
from forewarn.cli.placed import show_waiting
from forewarn.cli.session import Session

LIST = console.Layout(
    columns=("ROLLOUT", "ACTION", "STATE", "HOSTS", "WAVES", "BEGUN", "BY", "WHY"),
    wraps=("WHY",),
    spare=("BY", "BEGUN"),
)
WAVES = console.Layout(columns=("WAVE", "STATE", "HOSTS", "ANNOUNCED", "STARTED", "ENDED"), wraps=("HOSTS",))
TIMELINE = console.Layout(
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
        console.short(rollout["id"]),
        rollout["action"],
        words.rollout_state(rollout),
        len(rollout["hosts"]),
        _progress(rollout),
        words.at(rollout["created_at"]),
        rollout["by"],
        rollout["why"] or rollout["reason"],
    )


def _progress(rollout: dict[str, Any]) -> str:
    done = sum(wave["state"] == "done" for wave in rollout["waves"])
    return f"{done} of {len(rollout['waves'])} done"


def show(rollout: dict[str, Any]) -> None:
    """Show one: what it is, its waves, and what it waits for."""
    console.details(
        [
            ("rollout", rollout["id"]),
            ("action", rollout["action"]),
            ("state", words.rollout_state(rollout)),
            ("waves", _progress(rollout)),
            ("by", rollout["by"]),
            ("reason", rollout["reason"]),
            ("begun", words.at(rollout["created_at"])),
            ("ended", words.at(rollout["ended_at"])),
            ("deadline", words.at(rollout["deadline"])),
            ("health", _health(rollout)),
            ("given up", rollout["given_up"]),
            ("why", rollout["why"]),
            ("notice", words.notice(rollout["notice"])),
        ]
    )
    console.say()
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
    console.table(WAVES, rows, empty="No waves.")
    _show_reasons(rollout)


def _known_or_about(known: str | None, expected: str | None) -> str | None:
    """Say when something was or, as long as nobody knows that, about when it will be."""
    return words.at(known) if known or not expected else f"about {words.at(expected)}"


def _health(rollout: dict[str, Any]) -> str:
    polls = ", and has polled again if it did before" if rollout["require_poll"] else ""
    return f"a machine is healthy within {words.span(rollout['health_seconds'])} of its work{polls}"


def show_started(session: Session, rollout: dict[str, Any]) -> None:
    """Show what has been begun, and how to follow it."""
    show(rollout)
    _show_warnings(rollout)
    console.say(
        f"\n  Follow it:  {session.command('rollout show ' + console.short(rollout['id']) + ' --follow')}"
    )


def show_plan(rollout: dict[str, Any]) -> None:
    """Draw a plan, wave by wave."""
    waves = rollout["waves"]
    # Of waves that no window has room for after the others nobody knows the end.
    first, last = _time(waves[0]["announce_at"]), _time(rollout["ends_at"] or waves[0]["end_at"])
    rows = (
        (
            number,
            wave["hosts"],
            words.at(wave["announce_at"]),
            words.at(wave["start_at"]),
            words.at(wave["end_at"]),
            _bar(wave, first, last),
        )
        for number, wave in enumerate(waves, start=1)
    )
    console.table(TIMELINE, rows, empty="")
    count = f"{len(waves)} wave{'s' if len(waves) != 1 else ''}"
    length = words.between(waves[0]["announce_at"], rollout["ends_at"])
    legend = f"({NOTICE} notice, {WORK} work)"
    disturbs = any(wave["stages"] for wave in waves)
    console.say(
        f"\n{count}, {length} if nobody approves early {legend}." if disturbs else f"\n{count}: {IDLE}."
    )
    _show_reasons(rollout)
    _show_warnings(rollout)


def _bar(wave: dict[str, Any], first: datetime, last: datetime) -> str:
    """Draw one wave's share of the whole time; one that disturbs nobody takes none."""
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
    console.say("\nWaiting:")
    show_waiting({"waiting": rollout["waiting"][:MOST_REASONS]})
    if len(rollout["waiting"]) > MOST_REASONS:
        console.say(f"  … and {len(rollout['waiting']) - MOST_REASONS} more (--json has all)")


def _show_warnings(rollout: dict[str, Any]) -> None:
    if rollout["warnings"]:
        console.say("\nWarnings:")
    for warning in rollout["warnings"]:
        console.say(f"  {warning}")


def _time(moment: str) -> datetime:
    return datetime.fromisoformat(moment)
