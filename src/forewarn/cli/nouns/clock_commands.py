"""`forewarn clock`: service time."""

from dataclasses import replace
from datetime import timedelta

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import argument
from forewarn.cli.options.shared_options import seconds
from forewarn.cli.session import Noun, Session
from forewarn.core.moments import format_offset, format_span_briefly
from forewarn.wire.answers.service_answers import ClockAnswer, ClockOffsetAnswer

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
