"""`forewarn group`: show whom events are delivered to."""

from typing import Annotated, Any

import typer

from forewarn.cli import console, words
from forewarn.cli.session import Session, noun, with_session

app = noun("Show whom events are delivered to.")

LIST = console.Layout(
    columns=("GROUP", "KIND", "UPDATE DOMAINS", "PROJECT", "LISTENS", "INCARNATION"),
    spare=("INCARNATION", "PROJECT"),
)


@app.command("list")
@with_session
def list_(session: Session) -> None:
    """List groups."""
    answer = session.client.all("groups", **session.scope)
    rows = (_row(each) for each in answer["groups"])
    session.answer(answer, lambda: console.table(LIST, rows, empty="No groups."))


@app.command()
@with_session
def show(session: Session, name: Annotated[str, typer.Argument(metavar="GROUP", show_default=False)]) -> None:
    """Show a group."""
    answer = session.client.get(f"/v1/groups/{name}")
    group = {**answer["group"], "enabled_at": words.at(answer["group"]["enabled_at"])}
    shown = ((key.replace("_", " "), value) for key, value in group.items())
    session.answer(answer, lambda: console.details(shown))


def _row(group: dict[str, Any]) -> tuple[object, ...]:
    keys = ("name", "kind", "update_domains", "project", "enabled", "incarnation")
    return tuple(group[key] for key in keys)
