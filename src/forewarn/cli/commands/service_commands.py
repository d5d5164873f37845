"""`forewarn clock`, `health`, `metrics`, `calendar` and `promises`."""

import sys
from dataclasses import replace
from datetime import timedelta

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import WrongUsage, argument, option
from forewarn.cli.options import Duration
from forewarn.cli.session import Noun, Session, command
from forewarn.core.time_formats import format_offset, format_span_briefly
from forewarn.wire.answers.record_answers import PromiseAnswer
from forewarn.wire.answers.service_answers import ClockAnswer, ClockOffsetAnswer, StatusAnswer

app = Noun()

# A smaller difference from the system's time is not shown.
NOTABLE = timedelta(seconds=1)

DURATION = argument("seconds", "DURATION", "A span such as 90 (seconds), 15m, 1h30m or 7d.", type=Duration())


@app.verb()
def show(session: Session) -> None:
    """Show service time and the kind of clock."""
    clock = session.client.get("/v1/clock", ClockAnswer)
    offset = session.client.get("/v1/clock/offset", ClockOffsetAnswer)

    def show_both(value: ClockAnswer) -> None:
        _show(value)
        _show_offset(value, offset.value)

    session.print_reply(replace(clock, json={**clock.json, **offset.json}), show_both)


@app.verb(DURATION)
def advance(session: Session, seconds: float) -> None:
    """Advance a manual clock, and do all work that becomes due."""
    reply = session.client.post("/v1/clock/advance", ClockAnswer, {"seconds": seconds})
    session.print_reply(reply, _show)


def _show(clock: ClockAnswer) -> None:
    pace = "real time" if clock.speed == 1 else f"{clock.speed:g} times real time"
    usual = {"system": "the system's time", "manual": "moves on `clock advance`"}.get(clock.kind, pace)
    how = f"slowed to {clock.speed:g} until the system's time catches up" if _is_slowed(clock) else usual
    terminal.echo(f"{formatting.utc(clock.now)} ({clock.kind}: {how})")


def _is_slowed(clock: ClockAnswer) -> bool:
    return clock.kind == "system" and clock.speed < 1


def _show_offset(clock: ClockAnswer, answer: ClockOffsetAnswer) -> None:
    offset = timedelta(seconds=answer.offset_seconds)
    if abs(offset) < NOTABLE:
        return
    lasts = format_span_briefly(answer.offset_seconds / (1 - clock.speed)) if _is_slowed(clock) else ""
    terminal.echo(f"  {format_offset(offset)} the system's time{f', for {lasts} more' if lasts else ''}")


@command()
def health(session: Session) -> None:
    """Check whether the server works and can save changes."""
    client = session.client
    probes = {"healthy": "/healthz", "ready": "/readyz"}
    answer = {name: client.get(path, StatusAnswer).json for name, path in probes.items()}
    session.print_answer(answer, lambda: terminal.echo(f"{client.url} works and accepts orders."))


@command()
def metrics(session: Session) -> None:
    """Print the metrics in Prometheus format."""
    if session.json:
        raise WrongUsage("--json", "metrics have a format of their own")
    sys.stdout.write(session.client.text("/metrics"))


@command()
def calendar(session: Session) -> None:
    """Print upcoming events as an iCalendar file; --project selects those of a project."""
    if session.json:
        raise WrongUsage("--json", "a calendar has a format of its own; use `forewarn event list --json`")
    sys.stdout.write(session.client.text("/v1/calendar.ics", **session.scope))


COLUMNS = {
    **terminal.columns("MONTH PROJECT MACHINES=judged KEPT LATE MISSED=never BROKEN UNANNOUNCED"),
    "WORK": lambda each: "simulated" if each.simulated else "real",
}


@command(option("--month", "MONTH", "Only of this month in UTC, such as 2026-11."))
def promises(session: Session, month: str | None) -> None:
    """Count notices that were kept, late, missed or broken, by project and month."""
    wanted = {"month": month, **session.scope}
    none = "No promises: no announced work has started and ended yet."
    table = terminal.ItemTable[PromiseAnswer](
        columns=COLUMNS,
        spare_if_same=("PROJECT",),
        empty=formatting.none_found("promises", none, **wanted),
    )
    session.print_reply(session.client.all(PromiseAnswer, **wanted), lambda page: table.print(page.items))
