"""`forewarn rollout`: roll maintenance over hosts in waves, and see the plan before."""

from typing import Annotated, Any

import typer

from forewarn.cli import console, rollout_view
from forewarn.cli.client import Refused
from forewarn.cli.find import found
from forewarn.cli.rollout_follow import follow
from forewarn.cli.rollout_wish import Reason, with_wish
from forewarn.cli.session import Session, noun, with_session
from forewarn.wire.guid import is_guid

app = noun("Roll maintenance over hosts in waves; pause, resume or abort it.")

Detach = Annotated[
    bool, typer.Option("--detach", help="Return at once, as with --json, and let it go on unseen.")
]
Follow = Annotated[
    bool,
    typer.Option("--follow", help="Show what happens until it is done or pauses; Ctrl-C ends only that."),
]
Id = Annotated[
    str | None,
    typer.Argument(metavar="[ROLLOUT]", help="Its id, or how it begins; left out if only one is open."),
]


@app.command()
@with_session
@with_wish
def plan(session: Session, wish: dict[str, Any]) -> None:
    """Show the whole plan, wave by wave with times; nothing happens."""
    answer = session.client.post("/v1/rollouts", wish | {"dry_run": True})
    session.answer(answer, lambda: rollout_view.show_plan(answer["rollout"]))


@app.command()
@with_session
@with_wish
def start(session: Session, wish: dict[str, Any], detach: Detach = False) -> None:
    """Begin, and show what happens until it is done or pauses; Ctrl-C lets it go on unseen."""
    answer = session.client.post("/v1/rollouts", wish)
    if detach or session.json:
        session.answer(answer, lambda: rollout_view.show_started(session, answer["rollout"]))
        return
    for warning in answer["rollout"]["warnings"]:
        console.say(f"Warning: {warning}")
    follow(session, answer["rollout"]["id"])


@app.command("list")
@with_session
def list_(session: Session) -> None:
    """List rollouts, newest first."""
    answer = session.client.all("rollouts")
    rows = [rollout_view.row(each) for each in answer["rollouts"]]
    session.answer(answer, lambda: console.table(rollout_view.LIST, rows, empty="No rollouts."))


@app.command()
@with_session
def show(session: Session, id_: Id = None, follow_: Follow = False) -> None:
    """Show a rollout: its waves, and what it waits for."""
    meant = _meant(session, id_, over=True)["id"]
    if follow_:
        follow(session, meant)
        return
    answer = session.client.get(f"/v1/rollouts/{meant}", expected=True)
    session.answer(answer, lambda: rollout_view.show(answer["rollout"]))


@app.command()
@with_session
def pause(session: Session, id_: Id = None, reason: Reason = None) -> None:
    """Withdraw what is announced and not started; what has started is finished."""
    _do(session, id_, "pause", "paused; what was announced is withdrawn", reason)


@app.command()
@with_session
def resume(session: Session, id_: Id = None) -> None:
    """Go on; what was withdrawn is announced anew with full notice."""
    _do(session, id_, "resume", "goes on", None)


@app.command()
@with_session
def abort(session: Session, id_: Id = None, reason: Reason = None) -> None:
    """Give up what has not started; what has is finished first."""
    _do(session, id_, "abort", "aborted; what has started is finished", reason)


def _meant(session: Session, typed: str | None, *, over: bool = False) -> dict[str, Any]:
    """Find the rollout that is meant; of one whose whole id was typed nothing more is known.

    If none is open it may be the one that ended last, where something can still be done with it.
    """
    if typed is not None:
        return {"id": typed.upper()} if is_guid(typed) else found(session.client, "rollouts", typed)
    listed = session.client.all("rollouts", open=True)["rollouts"]
    if len(listed) == 1:
        return dict(listed[0])
    newest = session.client.get("/v1/rollouts", limit=1)["rollouts"] if over and not listed else []
    if newest:
        return dict(newest[0])
    several = "Several rollouts are open: say which (`forewarn rollout list` shows them)."
    raise Refused(several if listed else "No rollout is open: say which (`forewarn rollout list`).")


def _do(session: Session, typed: str | None, verb: str, said: str, reason: str | None) -> None:
    meant = _meant(session, typed)
    id_ = meant["id"]
    # What has been looked at is what is meant: not what somebody else has made of it meanwhile.
    seen = {"version": meant["version"]} if "version" in meant else {}
    body = seen | ({"reason": reason} if reason else {})
    answer = session.client.post(f"/v1/rollouts/{id_}/{verb}", body)
    session.answer(answer, lambda: console.say(f"Rollout {console.short(id_)}: {said}."))
