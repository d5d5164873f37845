"""`forewarn rollout`: plan and run maintenance over hosts in waves."""

from typing import Any, get_args

import click

from forewarn.cli import formatting, options, terminal
from forewarn.cli.command_group import WrongUsage, argument, flag, option
from forewarn.cli.live.rollout_follow import follow
from forewarn.cli.options import duration
from forewarn.cli.session import Noun, Session
from forewarn.cli.views import rollout_view
from forewarn.cli.views.confirmation import YES, ask_before_rollout
from forewarn.client.replies import RequestRefused
from forewarn.core.basic_types import MaintenanceWord, RolloutWord
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.texts import is_guid

_ALL = flag("--all every", "All hosts that have not failed.")
_TERMS = (
    option("--hosts-at-once", "N", "Hosts in a wave.", type=click.IntRange(min=1), default=1),
    duration("--gap gap_seconds", "Pause between two waves, such as 10m.", default="0"),
    options.DEADLINE,
    options.TAKES,
    duration(
        "--health health_seconds", "Pause if a machine is not healthy this long after its work. Default: 30m."
    ),
    flag("--require-poll", "Healthy machines must poll again, if they polled before.", default=None),
    option("--canary", "N", "Treat this many hosts first, one after the other.", type=click.IntRange(min=0)),
    duration("--soak soak_seconds", "Pause between the canaries and the other hosts."),
    option("--max-failures", "N|N%", "Skip this many failed hosts before the rollout pauses."),
    flag("--overlap", "Include hosts that another rollout has not finished.", default=None),
    options.HEARTBEAT,
    options.TOGETHER,
    options.REASON,
)


def _hosts(metavar: str) -> click.Argument:
    about = "The hosts, in this order; or use --all."
    return argument("hosts", metavar, about, nargs=-1)


ROLLOUT = (
    _hosts("[HOST]..."),
    _ALL,
    option(
        "--action",
        None,
        "The work on each machine; service works on the hosts themselves.",
        type=click.Choice(get_args(RolloutWord)),
        default="freeze",
    ),
    options.EVACUATE,
    options.IN_PLACE,
    options.RETURNING,
    options.HOST_WORK,
    *_TERMS,
    options.DRIVER,
    options.WHOLE,
)
# A gate sets the driver, and whether the machines of a host are done in parts.
GATED_ROLLOUT = (
    _hosts("[HOST]... -- COMMAND..."),
    _ALL,
    option(
        "--action",
        None,
        "The effect of the command on the machines.",
        type=click.Choice(get_args(MaintenanceWord)),
    ),
    *_TERMS,
)


def rollout_body(
    *,
    hosts: tuple[str, ...],
    every: bool,
    evacuate: bool = False,
    in_place: bool = False,
    returning: bool | None = None,
    **body: Any,
) -> dict[str, Any]:
    """Return the body of a rollout; the server chooses what was not typed."""
    if bool(hosts) == every:
        raise WrongUsage("HOST, --all", "name hosts, or use --all")
    mode = options.service_mode(evacuate=evacuate, in_place=in_place, returning=returning)
    return {"hosts": "all" if every else hosts, **mode, **body}


def gated_rollout_body(**typed: Any) -> dict[str, Any]:
    """Return the body of a gated rollout, or an empty one if no hosts are named."""
    if not typed["hosts"] and not typed["every"]:
        return {}
    if typed["action"] is None:
        raise WrongUsage("--action", "is required, for the notice to the guests")
    return rollout_body(**typed)


app = Noun()

DETACH = flag("--detach", "Return at once.")
FOLLOW = flag(
    "--follow follow_", "Show progress until the rollout ends or pauses. Ctrl-C stops only the view."
)
ID = options.id_argument("[ROLLOUT]", "The id, or a prefix. Default: the only open rollout.")


@app.verb(*ROLLOUT)
def plan(session: Session, **typed: Any) -> None:
    """Show the plan of a rollout, wave by wave with times, and change nothing."""
    body = {**rollout_body(**typed), "dry_run": True}
    reply = session.client.post("/v1/rollouts", RolloutAnswer, body)
    session.print_reply(reply, rollout_view.show_plan)


@app.verb(*ROLLOUT, DETACH, YES)
def start(session: Session, detach: bool, yes: bool, **typed: Any) -> None:
    """Start a rollout, and show its progress until it ends or pauses. Ctrl-C stops only the view."""
    body = rollout_body(**typed)
    ask_before_rollout(session, body, yes=yes)
    reply = session.client.post("/v1/rollouts", RolloutAnswer, body)
    if detach or session.json:
        session.print_reply(reply, lambda rollout: rollout_view.show_started(session, rollout))
        return
    for warning in reply.value.warnings:
        terminal.echo(f"Warning: {warning}")
    follow(session, options.id_of(reply.value))


@app.verb()
def list_(session: Session) -> None:
    """List rollouts, newest first."""
    session.print_reply(session.client.all(RolloutAnswer), lambda page: rollout_view.LIST.print(page.items))


@app.verb(ID, FOLLOW)
def show(session: Session, id_: str | None, follow_: bool) -> None:
    """Show the waves of a rollout, and what it waits for."""
    id_, _ = _find(session, id_, "show")
    if follow_:
        follow(session, id_)
        return
    reply = session.client.get(f"/v1/rollouts/{id_}", RolloutAnswer, expected=True)
    session.print_reply(reply, lambda rollout: rollout_view.show(session, rollout))


@app.verb(ID, options.REASON)
def pause(session: Session, id_: str | None, reason: str | None) -> None:
    """Pause a rollout: withdraw what is announced, and finish what has started."""
    _change(session, id_, "pause", reason)


@app.verb(ID)
def resume(session: Session, id_: str | None) -> None:
    """Resume a rollout: announce withdrawn hosts again with full notice."""
    _change(session, id_, "resume", None)


@app.verb(ID, options.REASON)
def abort(session: Session, id_: str | None, reason: str | None) -> None:
    """Abort a rollout: cancel what has not started, and finish what has."""
    _change(session, id_, "abort", reason)


# The states of an open rollout in which a verb makes sense.
APPLICABLE = {
    "show": ("running", "paused", "aborting"),
    "pause": ("running",),
    "resume": ("paused",),
    "abort": ("running", "paused"),
}
OUTCOMES = {
    "running": "resumed",
    "paused": "paused; announced hosts are withdrawn",
    "aborting": "aborting; started hosts finish first",
    "aborted": "aborted",
    "done": "done",
}


def _find(session: Session, typed: str | None, verb: str) -> tuple[str, int | None]:
    """Return the id of the requested rollout, and its version unless the whole id was typed."""
    if typed is not None and is_guid(typed):
        return typed.upper(), None
    if typed is not None:
        rollout = options.find_by_prefix(session.client, RolloutAnswer, typed)
    else:
        rollout = _only_open(session, verb)
    return options.id_of(rollout), rollout.version


def _only_open(session: Session, verb: str) -> RolloutAnswer:
    """Return the open rollout that a verb can apply to. If none is open, `show` takes the latest."""
    listed = session.client.all(RolloutAnswer, open=True).value.items
    fitting = [each for each in listed if formatting.rollout_state(each) in APPLICABLE[verb]]
    # With a single open rollout the server gives the best reason for a refusal.
    found = fitting or (listed if len(listed) == 1 else [])
    if not listed and verb == "show":
        found = session.client.page(RolloutAnswer, limit=1).value.items
    if len(found) == 1:
        return found[0]
    count = "several rollouts are open" if listed else "no rollout is open"
    which = f", and none of them is {' or '.join(APPLICABLE[verb])}" if listed and not fitting else ""
    raise RequestRefused(f"{count}{which}; give an id (`forewarn rollout list` shows them)")


def _change(session: Session, typed: str | None, verb: str, reason: str | None) -> None:
    id_, version = _find(session, typed, verb)
    # The server refuses another version, so a change by someone else is not overwritten.
    body = {"version": version, "reason": reason or None}
    reply = session.client.post(f"/v1/rollouts/{id_}/{verb}", RolloutAnswer, body)
    rollout = reply.value
    state = formatting.rollout_state(rollout)
    if verb == "resume" and state == "paused":
        raise RequestRefused(f"rollout {terminal.short(id_)} is paused again: {rollout.why}")
    progress = "" if state == "running" else f" {formatting.rollout_progress(rollout)}."
    text = f"Rollout {terminal.short(id_)} {OUTCOMES[state]}.{progress}"
    session.print_reply(reply, lambda _: terminal.echo_wrapped(text, hanging="  "))
