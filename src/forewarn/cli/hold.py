"""`forewarn hold` and `release`: let nothing new be announced or started for a while."""

from typing import Annotated, Any

import typer

from forewarn.cli import console, words
from forewarn.cli.complete import names
from forewarn.cli.find import whole_id
from forewarn.cli.session import Session, with_session

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, shown everywhere.")]
Host = Annotated[
    str | None,
    typer.Option("--host", metavar="HOST", help="Only on this host.", autocompletion=names("hosts")),
]
Id = Annotated[str | None, typer.Argument(metavar="[HOLD]", help="Its id; left out if there is only one.")]

LAYOUT = console.Layout(columns=("HOLD", "REACH", "BY", "SINCE", "WHY"), wraps=("WHY",))


@with_session
def hold(session: Session, reason: Reason, host: Host = None) -> None:
    """Announce and start nothing new: anywhere, in a project (--project) or on a host."""
    body = {"reason": reason, "project": session.project, "host": host}
    answer = session.client.post("/v1/holds", body)
    session.answer(answer, lambda: _show_set(session, answer["hold"]))


@with_session
def release(session: Session, id_: Id = None) -> None:
    """Lift a hold; what waited for it goes on."""
    wanted = whole_id(session.client, "holds", id_) if id_ else _only(session)
    answer = session.client.post(f"/v1/holds/{wanted}/release")
    session.answer(answer, lambda: console.say(f"{answer['hold']['reach']}: released."))


@with_session
def holds(session: Session) -> None:
    """List what is held, and why."""
    answer = session.client.get("/v1/holds")
    rows = [
        (console.short(each["id"]), each["reach"], each["by"], words.at(each["at"]), each["reason"])
        for each in answer["holds"]
    ]
    session.answer(answer, lambda: console.table(LAYOUT, rows, empty="Nothing is held."))


def _show_set(session: Session, hold_: dict[str, Any]) -> None:
    console.say(f"{hold_['reach']}: held. Nothing new is announced or started; polls and approvals go on.")
    console.say(f"  Lift it:  {session.command('release ' + hold_['id'])}")


def _only(session: Session) -> str:
    found = session.client.get("/v1/holds")["holds"]
    if len(found) == 1:
        return str(found[0]["id"])
    several = "Several holds are in force: say which (`forewarn holds` lists them)."
    console.complain(several if found else "Nothing is held.")
    raise typer.Exit(1)
