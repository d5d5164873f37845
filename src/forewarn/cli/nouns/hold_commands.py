"""`forewarn hold` and `release`: let nothing new be announced or started for a while."""

from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import full_id
from forewarn.cli.options.completion import names
from forewarn.cli.session import Session, with_session
from forewarn.client.replies import RequestRefused

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, shown everywhere.")]
Host = Annotated[
    str | None,
    typer.Option("--host", metavar="HOST", help="Only on this host.", autocompletion=names("hosts")),
]
HeldHost = Annotated[
    str | None,
    typer.Option("--host", metavar="HOST", help="The hold on this host.", autocompletion=names("hosts")),
]
Id = Annotated[str | None, typer.Argument(metavar="[HOLD]", help="Its id; left out if there is only one.")]

LAYOUT = terminal.TableLayout(columns=("HOLD", "REACH", "BY", "SINCE", "WHY"), wraps=("WHY",))


@with_session
def hold(session: Session, reason: Reason, host: Host = None) -> None:
    """Announce and start nothing new: anywhere, in a project (--project) or on a host."""
    body = {"reason": reason, "project": session.project, "host": host}
    answer = session.client.post("/v1/holds", body)
    session.print_answer(answer, lambda: _show_set(session, answer["hold"]))


@with_session
def release(session: Session, id_: Id = None, host: HeldHost = None) -> None:
    """Lift a hold, by its id or by what it holds (--project, --host); what waited for it goes on."""
    if id_ and (host or session.project):
        raise typer.BadParameter("an id says all: leave --project and --host out", param_hint="HOLD")
    wanted = full_id(session.client, "holds", id_) if id_ else _only(session, host)
    answer = session.client.post(f"/v1/holds/{wanted}/release")
    session.print_answer(answer, lambda: terminal.echo(f"{answer['hold']['reach']}: released."))


@with_session
def holds(session: Session) -> None:
    """List what is held, and why."""
    answer = session.client.get("/v1/holds")
    rows = [
        (terminal.short(each["id"]), each["reach"], each["by"], formatting.at(each["at"]), each["reason"])
        for each in answer["holds"]
    ]
    session.print_answer(answer, lambda: terminal.table(LAYOUT, rows, empty="Nothing is held."))


def _show_set(session: Session, hold_: dict[str, Any]) -> None:
    terminal.echo(f"{hold_['reach']}: held. Nothing new is announced or started; polls and approvals go on.")
    terminal.echo(f"  Lift it:  {session.command('release ' + hold_['id'])}")


def _only(session: Session, host: str | None) -> str:
    """Find the hold on a project or a host or, where none is named, the only one there is."""
    held = session.client.get("/v1/holds")["holds"]
    named = bool(host or session.project)
    found = (
        [each for each in held if (each["project"], each["host"]) == (session.project, host)]
        if named
        else held
    )
    if len(found) == 1:
        return str(found[0]["id"])
    if found:
        raise RequestRefused(
            "several holds are in force: say which, by its id, --project or --host (`forewarn holds`)"
        )
    if not held:
        raise RequestRefused("nothing is held")
    where = " and ".join(
        f"{what} {name}" for what, name in (("project", session.project), ("host", host)) if name
    )
    raise RequestRefused(f"there is no hold on {where}: `forewarn holds` shows those there are")
