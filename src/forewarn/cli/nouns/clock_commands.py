"""`forewarn clock`: service time."""

from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.options.shared_options import seconds
from forewarn.cli.session import Session, noun, with_session

app = noun("Show service time; turn it, if the clock is a manual one.")

Duration = Annotated[
    str,
    typer.Argument(metavar="DURATION", help="As 90 (seconds), 15m, 1h30m or 7d.", show_default=False),
]


@app.command()
@with_session
def show(session: Session) -> None:
    """Show service time, and how it runs."""
    answer = session.client.get("/v1/clock")
    session.print_answer(answer, lambda: _show(answer))


@app.command()
@with_session
def advance(session: Session, duration: Duration) -> None:
    """Turn a manual clock; all that falls due on the way is done."""
    answer = session.client.post("/v1/clock/advance", {"seconds": seconds(duration, hint="DURATION")})
    session.print_answer(answer, lambda: _show(answer))


def _show(clock: dict[str, Any]) -> None:
    how = {"system": "the system's time", "manual": "moves when told"}.get(
        clock["kind"], f"{clock['speed']:g} times as fast as the world"
    )
    terminal.echo(f"{formatting.at(clock['now'])} ({clock['kind']}: {how})")
