"""`forewarn rollout`: roll maintenance over hosts in waves, and see the plan before."""

from typing import Any

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import flag
from forewarn.cli.following.rollout_follow import follow
from forewarn.cli.options import REASON, find_by_prefix, id_argument, id_of
from forewarn.cli.rollout_options import ROLLOUT, rollout_body
from forewarn.cli.session import Noun, Session
from forewarn.cli.views import rollout_view
from forewarn.cli.views.questions import YES, ask_before_rollout
from forewarn.client.replies import RequestRefused
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.guid import is_guid

app = Noun()

DETACH = flag("--detach", "Return at once, as with --json, and let it go on unseen.")
FOLLOW = flag("--follow follow_", "Show what happens until it is done or pauses; Ctrl-C ends only that.")
ID = id_argument("[ROLLOUT]", "Its id, or how it begins; left out if only one can be meant.")


@app.verb(*ROLLOUT)
def plan(session: Session, **typed: Any) -> None:
    """Show the whole plan, wave by wave with times; nothing happens."""
    body = {**rollout_body(**typed), "dry_run": True}
    reply = session.client.post("/v1/rollouts", RolloutAnswer, body)
    session.print_reply(reply, rollout_view.show_plan)


@app.verb(*ROLLOUT, DETACH, YES)
def start(session: Session, detach: bool, yes: bool, **typed: Any) -> None:
    """Begin, and show what happens until it is done or pauses; Ctrl-C lets it go on unseen."""
    body = rollout_body(**typed)
    ask_before_rollout(session, body, yes=yes)
    reply = session.client.post("/v1/rollouts", RolloutAnswer, body)
    if detach or session.json:
        session.print_reply(reply, lambda rollout: rollout_view.show_started(session, rollout))
        return
    rollout = reply.value
    for warning in rollout.warnings:
        terminal.echo(f"Warning: {warning}")
    follow(session, id_of(rollout))


@app.verb()
def list_(session: Session) -> None:
    """List rollouts, newest first."""
    session.print_reply(session.client.all(RolloutAnswer), lambda page: rollout_view.LIST.print(page.items))


@app.verb(ID, FOLLOW)
def show(session: Session, id_: str | None, follow_: bool) -> None:
    """Show a rollout: its waves, and what it waits for."""
    meant, _ = _meant(session, id_, "show")
    if follow_:
        follow(session, meant)
        return
    reply = session.client.get(f"/v1/rollouts/{meant}", RolloutAnswer, expected=True)
    session.print_reply(reply, lambda rollout: rollout_view.show(session, rollout))


@app.verb(ID, REASON)
def pause(session: Session, id_: str | None, reason: str | None) -> None:
    """Withdraw what is announced and not started; what has started is finished."""
    _do(session, id_, "pause", reason)


@app.verb(ID)
def resume(session: Session, id_: str | None) -> None:
    """Go on; what was withdrawn is announced anew with full notice."""
    _do(session, id_, "resume", None)


@app.verb(ID, REASON)
def abort(session: Session, id_: str | None, reason: str | None) -> None:
    """Call off what has not started, and announce nothing more; what has started ends first."""
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
    "aborting": "aborting; what has started ends first",
    "aborted": "aborted",
    "done": "done",
}


def _meant(session: Session, typed: str | None, verb: str) -> tuple[str, int | None]:
    """Find the id of the rollout that is meant and, unless its whole id was typed, the version looked at.

    If none is open, the one that ended last can still be shown.
    """
    if typed is not None and is_guid(typed):
        return typed.upper(), None
    rollout = (
        _listed(session, verb) if typed is None else find_by_prefix(session.client, RolloutAnswer, typed)
    )
    return id_of(rollout), rollout.version


def _listed(session: Session, verb: str) -> RolloutAnswer:
    listed = session.client.all(RolloutAnswer, open=True).value.items
    fitting = [each for each in listed if formatting.rollout_state(each) in FITTING[verb]]
    # Of the only one the server says best why it cannot be.
    meant = fitting or (listed if len(listed) == 1 else [])
    if not listed and verb == "show":
        meant = session.client.page(RolloutAnswer, limit=1).value.items
    if len(meant) == 1:
        return meant[0]
    open_ = "Several rollouts are open" if listed else "No rollout is open"
    which = f", and none of them is {' or '.join(FITTING[verb])}" if listed and not fitting else ""
    raise RequestRefused(f"{open_}{which}: say which (`forewarn rollout list` shows them).")


def _do(session: Session, typed: str | None, verb: str, reason: str | None) -> None:
    id_, version = _meant(session, typed, verb)
    # Only the version that was looked at: another may have been made of it meanwhile.
    body = {"version": version, "reason": reason or None}
    reply = session.client.post(f"/v1/rollouts/{id_}/{verb}", RolloutAnswer, body)
    rollout = reply.value
    state = formatting.rollout_state(rollout)
    if verb == "resume" and state == "paused":
        raise RequestRefused(f"Rollout {terminal.short(id_)} is paused again: {rollout.why}")
    session.print_reply(reply, lambda _: _show_outcome(rollout))


def _show_outcome(rollout: RolloutAnswer) -> None:
    state = formatting.rollout_state(rollout)
    done = "" if state == "running" else f" {formatting.rollout_progress(rollout)}."
    terminal.fold(f"Rollout {terminal.short(rollout.id)}: {OUTCOMES[state]}.{done}", hanging="  ")
