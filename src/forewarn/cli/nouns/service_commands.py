"""`forewarn clock`, `health`, `metrics`, `calendar` and `promises`: what the service says of itself."""

import sys
from dataclasses import replace
from datetime import timedelta

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import argument, option
from forewarn.cli.options import seconds
from forewarn.cli.session import Noun, Session, command
from forewarn.client.replies import RequestRefused
from forewarn.core.time_formats import format_offset, format_span_briefly
from forewarn.wire.answers.record_answers import PromiseAnswer
from forewarn.wire.answers.service_answers import ClockAnswer, ClockOffsetAnswer, StatusAnswer

app = Noun()

# A clock that is turned by hand is seldom less than that away from the system's.
NOTABLE = timedelta(seconds=1)

DURATION = argument("duration", "DURATION", "As 90 (seconds), 15m, 1h30m or 7d.")


@app.verb()
def show(session: Session) -> None:
    """Show service time, and how it runs."""
    clock = session.client.get("/v1/clock", ClockAnswer)
    offset = session.client.get("/v1/clock/offset", ClockOffsetAnswer)

    def show_both(value: ClockAnswer) -> None:
        _show(value)
        _show_offset(value, offset.value)

    session.print_reply(replace(clock, json={**clock.json, **offset.json}), show_both)


@app.verb(DURATION)
def advance(session: Session, duration: str) -> None:
    """Turn a manual clock; all that falls due on the way is done."""
    body = {"seconds": seconds(duration, hint="DURATION")}
    session.print_reply(session.client.post("/v1/clock/advance", ClockAnswer, body), _show)


def _show(clock: ClockAnswer) -> None:
    pace = "as fast as the world" if clock.speed == 1 else f"{clock.speed:g} times as fast as the world"
    usual = {"system": "the system's time", "manual": "moves when it is turned"}.get(clock.kind, pace)
    how = (
        f"at {clock.speed:g} times its speed until it meets the system's time" if _is_slowed(clock) else usual
    )
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
    """Check whether the server works, and whether it can save anything."""
    client = session.client
    probes = {"healthy": "/healthz", "ready": "/readyz"}
    answer = {name: client.get(path, StatusAnswer).json for name, path in probes.items()}
    session.print_answer(answer, lambda: terminal.echo(f"{client.url} works, and takes orders."))


@command()
def metrics(session: Session) -> None:
    """Print the metrics, as Prometheus reads them."""
    if session.json:
        raise RequestRefused("metrics have a form of their own: leave --json out")
    sys.stdout.write(session.client.text("/metrics"))


@command()
def calendar(session: Session) -> None:
    """Print coming events as a calendar; --project prints those of a project."""
    if session.json:
        raise RequestRefused(
            "a calendar has a form of its own: leave --json out (`forewarn event list --json`)"
        )
    sys.stdout.write(session.client.text("/v1/calendar.ics", **session.scope))


COLUMNS = {
    "MONTH": lambda each: each.month,
    "PROJECT": lambda each: each.project,
    "MACHINES": lambda each: each.judged,
    "KEPT": lambda each: each.kept,
    "LATE": lambda each: each.late,
    "NEVER": lambda each: each.never,
    "BROKEN": lambda each: each.broken,
    "UNANNOUNCED": lambda each: each.unannounced,
    "WORK": lambda each: "simulated" if each.simulated else "real",
}


@command(option("--month", "MONTH", "Only of this month, in UTC, as 2026-11."))
def promises(session: Session, month: str | None) -> None:
    """Count by project and month whose notice was kept, late or never got, and what else befell them."""
    wanted = {"month": month, **session.scope}
    none = "No promises: nothing that was announced has started and ended yet."
    table = terminal.ItemTable[PromiseAnswer](
        columns=COLUMNS,
        spare_if_same=("PROJECT",),
        empty=formatting.none_found("promises", none, **wanted),
    )
    session.print_reply(session.client.all(PromiseAnswer, **wanted), lambda page: table.print(page.items))
