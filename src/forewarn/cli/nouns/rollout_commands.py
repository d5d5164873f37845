"""`forewarn rollout`: roll maintenance over hosts in waves, and see the plan before."""

from typing import Any, get_args

import click

from forewarn.cli import formatting, options, terminal
from forewarn.cli.command_group import argument, flag, option
from forewarn.cli.completion import names
from forewarn.cli.following.rollout_follow import follow
from forewarn.cli.session import Noun, Session
from forewarn.cli.views import rollout_view
from forewarn.cli.views.questions import YES, ask_before_rollout
from forewarn.client.replies import RequestRefused
from forewarn.core.basic_types import MaintenanceWord, RolloutWord
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.texts import is_guid

_TERMS = (
    option("--hosts-at-once at_once", "N", "How many in a wave.", type=click.IntRange(min=1), default=1),
    option("--gap", "DURATION", "Between two waves, as 10m.", default="0"),
    options.DEADLINE,
    options.TAKES,
    option("--health", "DURATION", "How long after its work a machine may take to be healthy. Else 30m."),
    flag("--require-poll", "A machine that polled before must have polled again."),
    option("--canary", "N", "So many hosts first, apart from all others.", type=click.IntRange(min=0)),
    option("--soak", "DURATION", "How long the others wait after the canaries."),
    option("--max-failures", "N|N%", "How many hosts may fail and are left out before it pauses."),
)
_OVERLAP = flag("--overlap", "Even over hosts that another rollout has still to do.")
_ALL = flag("--all every", "All hosts that have not failed.")


def _hosts(metavar: str) -> click.Argument:
    about = "Which hosts, in this order; or --all."
    return argument("hosts", metavar, about, nargs=-1, shell_complete=names("hosts"))


ROLLOUT = (
    _hosts("[HOST]..."),
    _ALL,
    option(
        "--action",
        None,
        "What is done to their machines; service: to the hosts themselves.",
        type=click.Choice(get_args(RolloutWord)),
        default="freeze",
    ),
    options.EVACUATE,
    options.IN_PLACE,
    options.RETURNING,
    options.HOST_WORK,
    *_TERMS,
    options.DRIVER,
    _OVERLAP,
    options.HEARTBEAT,
    options.WHOLE,
    options.TOGETHER,
    options.REASON,
)
# A gate says itself who does the work, and whether hosts are done in parts.
GATED_ROLLOUT = (
    _hosts("[HOST]... -- COMMAND..."),
    _ALL,
    option(
        "--action",
        None,
        "What the command does to their machines.",
        type=click.Choice(get_args(MaintenanceWord)),
    ),
    *_TERMS,
    _OVERLAP,
    options.HEARTBEAT,
    options.TOGETHER,
    options.REASON,
)


def rollout_body(
    *,
    hosts: tuple[str, ...],
    every: bool,
    action: RolloutWord,
    at_once: int,
    gap: str,
    deadline: str | None,
    takes: str | None,
    health: str | None,
    require_poll: bool,
    canary: int | None,
    soak: str | None,
    max_failures: str | None,
    overlap: bool,
    heartbeat: str | None,
    together: str | None,
    reason: str | None,
    evacuate: bool = False,
    in_place: bool = False,
    returning: bool = False,
    host_work: str | None = None,
    driver: str | None = None,
    whole: bool = False,
) -> dict[str, Any]:
    """Make what is sent of what was typed; what was not is the server's to say."""
    if hosts and every:
        raise click.BadParameter("name hosts or say --all, not both")
    if not hosts and not every:
        raise click.BadParameter("name hosts, or say --all")
    return {
        "hosts": "all" if every else hosts,
        "action": action,
        **options.service_mode(evacuate=evacuate, in_place=in_place, returning=returning),
        "host_work": host_work,
        "hosts_at_once": at_once,
        "gap_seconds": options.seconds(gap, hint="--gap"),
        "deadline": deadline,
        "expected_seconds": options.seconds_or_none(takes, hint="--takes"),
        "health_seconds": options.seconds_or_none(health, hint="--health"),
        "heartbeat_seconds": options.seconds_or_none(heartbeat, hint="--heartbeat"),
        "require_poll": require_poll or None,
        "canary": canary,
        "soak_seconds": options.seconds_or_none(soak, hint="--soak"),
        "max_failures": max_failures,
        "driver": driver,
        "overlap": overlap or None,
        "whole": whole or None,
        "together": together,
        "reason": reason or None,
    }


def gated_rollout_body(**typed: Any) -> dict[str, Any]:
    """Make what is sent, or nothing if no hosts are named."""
    if not typed["hosts"] and not typed["every"]:
        return {}
    if typed["action"] is None:
        raise click.BadParameter("say --action: guests are told what the command does to them")
    return rollout_body(**typed)


app = Noun()

DETACH = flag("--detach", "Return at once, as with --json, and let it go on unseen.")
FOLLOW = flag("--follow follow_", "Show what happens until it is done or pauses; Ctrl-C ends only that.")
ID = options.id_argument("[ROLLOUT]", "Its id, or how it begins; left out if only one can be meant.")


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
    follow(session, options.id_of(rollout))


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


@app.verb(ID, options.REASON)
def pause(session: Session, id_: str | None, reason: str | None) -> None:
    """Withdraw what is announced and not started; what has started is finished."""
    _do(session, id_, "pause", reason)


@app.verb(ID)
def resume(session: Session, id_: str | None) -> None:
    """Go on; what was withdrawn is announced anew with full notice."""
    _do(session, id_, "resume", None)


@app.verb(ID, options.REASON)
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
        _listed(session, verb)
        if typed is None
        else options.find_by_prefix(session.client, RolloutAnswer, typed)
    )
    return options.id_of(rollout), rollout.version


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
