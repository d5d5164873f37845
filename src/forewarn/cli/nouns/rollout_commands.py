"""`forewarn rollout`: roll maintenance over hosts in waves, and see the plan before."""

from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.following.rollout_follow import follow
from forewarn.cli.id_lookup import find_by_prefix
from forewarn.cli.options.rollout_options import with_rollout
from forewarn.cli.options.shared_options import Reason
from forewarn.cli.session import Session, noun, with_session
from forewarn.cli.views import rollout_view
from forewarn.client.replies import RequestRefused
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
    typer.Argument(metavar="[ROLLOUT]", help="Its id, or how it begins; left out if only one can be meant."),
]


@app.command()
@with_session
@with_rollout
def plan(session: Session, body: dict[str, Any]) -> None:
    """Show the whole plan, wave by wave with times; nothing happens."""
    answer = session.client.post("/v1/rollouts", body | {"dry_run": True})
    session.print_answer(answer, lambda: rollout_view.show_plan(answer["rollout"]))


@app.command()
@with_session
@with_rollout
def start(session: Session, body: dict[str, Any], detach: Detach = False) -> None:
    """Begin, and show what happens until it is done or pauses; Ctrl-C lets it go on unseen."""
    answer = session.client.post("/v1/rollouts", body)
    if detach or session.json:
        session.print_answer(answer, lambda: rollout_view.show_started(session, answer["rollout"]))
        return
    for warning in answer["rollout"]["warnings"]:
        terminal.echo(f"Warning: {warning}")
    follow(session, answer["rollout"]["id"])


@app.command("list")
@with_session
def list_(session: Session) -> None:
    """List rollouts, newest first."""
    answer = session.client.all("rollouts")
    rows = [rollout_view.row(each) for each in answer["rollouts"]]
    session.print_answer(answer, lambda: terminal.table(rollout_view.LIST, rows, empty="No rollouts."))


@app.command()
@with_session
def show(session: Session, id_: Id = None, follow_: Follow = False) -> None:
    """Show a rollout: its waves, and what it waits for."""
    meant = _meant(session, id_, "show")["id"]
    if follow_:
        follow(session, meant)
        return
    answer = session.client.get(f"/v1/rollouts/{meant}", expected=True)
    session.print_answer(answer, lambda: rollout_view.show(answer["rollout"]))


@app.command()
@with_session
def pause(session: Session, id_: Id = None, reason: Reason = None) -> None:
    """Withdraw what is announced and not started; what has started is finished."""
    _do(session, id_, "pause", reason)


@app.command()
@with_session
def resume(session: Session, id_: Id = None) -> None:
    """Go on; what was withdrawn is announced anew with full notice."""
    _do(session, id_, "resume", None)


@app.command()
@with_session
def abort(session: Session, id_: Id = None, reason: Reason = None) -> None:
    """Abandon what has not started; what has is finished first."""
    _do(session, id_, "abort", reason)


# In which states of an open rollout a verb makes sense, and what has become of it then.
FITTING = {
    "show": ("running", "paused", "aborting"),
    "pause": ("running",),
    "resume": ("paused",),
    "abort": ("running", "paused"),
}
OUTCOMES = {
    "running": "goes on",
    "paused": "paused; what was announced is withdrawn",
    "aborting": "aborting; what has started is finished first",
    "aborted": "aborted",
    "done": "done",
}


def _meant(session: Session, typed: str | None, verb: str) -> dict[str, Any]:
    """Find the rollout that is meant; of one whose whole id was typed nothing more is known.

    If none is open, the one that ended last can still be shown.
    """
    if typed is not None:
        return {"id": typed.upper()} if is_guid(typed) else find_by_prefix(session.client, "rollouts", typed)
    listed = session.client.all("rollouts", open=True)["rollouts"]
    fitting = [each for each in listed if formatting.rollout_state(each) in FITTING[verb]]
    # Of the only one the server says best why it cannot be.
    meant = fitting or (listed if len(listed) == 1 else [])
    if not listed and verb == "show":
        meant = session.client.get("/v1/rollouts", limit=1)["rollouts"]
    if len(meant) == 1:
        return dict(meant[0])
    open_ = "Several rollouts are open" if listed else "No rollout is open"
    which = f", and none of them is {' or '.join(FITTING[verb])}" if listed and not fitting else ""
    raise RequestRefused(f"{open_}{which}: say which (`forewarn rollout list` shows them).")


def _do(session: Session, typed: str | None, verb: str, reason: str | None) -> None:
    meant = _meant(session, typed, verb)
    id_ = meant["id"]
    # Only the version that was looked at: another may have been made of it meanwhile.
    seen = {"version": meant["version"]} if "version" in meant else {}
    body = seen | ({"reason": reason} if reason else {})
    answer = session.client.post(f"/v1/rollouts/{id_}/{verb}", body)
    state = formatting.rollout_state(answer["rollout"])
    if verb == "resume" and state == "paused":
        raise RequestRefused(f"Rollout {terminal.short(id_)} is paused again: {answer['rollout']['why']}")
    session.print_answer(answer, lambda: terminal.echo(f"Rollout {terminal.short(id_)}: {OUTCOMES[state]}."))
