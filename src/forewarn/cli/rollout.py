"""`forewarn rollout`: roll maintenance over hosts in waves, and see the plan before."""

from datetime import datetime
from typing import Annotated, Any, Literal

import typer

from forewarn.cli import console, words
from forewarn.cli.client import Refused
from forewarn.cli.complete import names
from forewarn.cli.durations import Deadline, Heartbeat, Takes, seconds, seconds_or_none
from forewarn.cli.find import found
from forewarn.cli.placed import show_waiting
from forewarn.cli.rollout_follow import follow
from forewarn.cli.session import Session, noun, with_session
from forewarn.wire.guid import is_guid

app = noun("Roll maintenance over hosts in waves; pause, resume or abort it.")

Hosts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[HOST]...", help="Which hosts, in this order; or --all.", autocompletion=names("hosts")
    ),
]
All = Annotated[bool, typer.Option("--all", help="All hosts that have not failed.")]
Action = Annotated[
    Literal["freeze", "reboot", "redeploy"],
    typer.Option("--action", help="What is done to their machines."),
]
AtOnce = Annotated[int, typer.Option("--hosts-at-once", metavar="N", min=1, help="How many in a wave.")]
Gap = Annotated[str, typer.Option("--gap", metavar="DURATION", help="Between two waves, as 10m.")]
Health = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="How long a machine may take to be healthy again. Else 30m."),
]
RequirePoll = Annotated[
    bool, typer.Option("--require-poll", help="A machine that polled before must have polled again.")
]
Driver = Annotated[
    Literal["simulated", "external"],
    typer.Option(help="external: your own runbook does the work of each order, and reports."),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the records.")]
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

LIST = console.Layout(
    columns=("ROLLOUT", "ACTION", "STATE", "HOSTS", "WAVES", "BEGUN", "BY", "WHY"),
    wraps=("WHY",),
    spare=("BY", "BEGUN"),
)
WAVES = console.Layout(columns=("WAVE", "STATE", "HOSTS", "ENDED"), wraps=("HOSTS",))
TIMELINE = console.Layout(
    columns=("WAVE", "HOSTS", "ANNOUNCED", "STARTS BY", "ENDS ABOUT", "TIMELINE"), wraps=("HOSTS",)
)
WIDTH = 40
NOTICE, WORK = "·", "█"
# A thousand hosts would fill the screen with their turns; JSON has them all.
MOST_REASONS = 20


@app.command()
@with_session
def plan(
    session: Session,
    hosts: Hosts = None,
    every: All = False,
    action: Action = "freeze",
    at_once: AtOnce = 1,
    gap: Gap = "0",
    deadline: Deadline = None,
    takes: Takes = None,
    health: Health = None,
    require_poll: RequirePoll = False,
    driver: Driver = "simulated",
) -> None:
    """Show the whole plan, wave by wave with times; nothing happens."""
    body = _body(hosts, every, action, at_once, gap) | {"dry_run": True}
    body |= _conditions(deadline, takes, health, require_poll, driver)
    answer = session.client.post("/v1/rollouts", body)
    session.answer(answer, lambda: _show_plan(answer["rollout"]))


@app.command()
@with_session
def start(
    session: Session,
    hosts: Hosts = None,
    every: All = False,
    action: Action = "freeze",
    at_once: AtOnce = 1,
    gap: Gap = "0",
    deadline: Deadline = None,
    takes: Takes = None,
    health: Health = None,
    require_poll: RequirePoll = False,
    driver: Driver = "simulated",
    heartbeat: Heartbeat = None,
    reason: Reason = None,
    detach: Detach = False,
) -> None:
    """Begin, and show what happens until it is done or pauses; Ctrl-C lets it go on unseen."""
    body = _body(hosts, every, action, at_once, gap) | ({"reason": reason} if reason else {})
    body |= _conditions(deadline, takes, health, require_poll, driver, heartbeat)
    answer = session.client.post("/v1/rollouts", body)
    if detach or session.json:
        session.answer(answer, lambda: _show_started(session, answer["rollout"]))
        return
    for warning in answer["rollout"]["warnings"]:
        console.say(f"Warning: {warning}")
    follow(session, answer["rollout"]["id"])


@app.command("list")
@with_session
def list_(session: Session) -> None:
    """List rollouts, newest first."""
    answer = session.client.all("rollouts")
    rows = [_row(each) for each in answer["rollouts"]]
    session.answer(answer, lambda: console.table(LIST, rows, empty="No rollouts."))


@app.command()
@with_session
def show(session: Session, id_: Id = None, follow_: Follow = False) -> None:
    """Show a rollout: its waves, and what it waits for."""
    meant = _meant(session, id_, over=True)["id"]
    if follow_:
        follow(session, meant)
        return
    answer = session.client.get(f"/v1/rollouts/{meant}")
    session.answer(answer, lambda: _show(answer["rollout"]))


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


def _body(hosts: list[str] | None, every: bool, action: str, at_once: int, gap: str) -> dict[str, Any]:
    if bool(hosts) == every:
        raise typer.BadParameter("name hosts, or say --all")
    return {
        "hosts": "all" if every else hosts,
        "action": action,
        "hosts_at_once": at_once,
        "gap_seconds": seconds(gap, hint="--gap"),
    }


def _conditions(
    deadline: str | None,
    takes: str | None,
    health: str | None,
    require_poll: bool,
    driver: str,
    heartbeat: str | None = None,
) -> dict[str, Any]:
    given = {
        "deadline": deadline,
        "expected_seconds": seconds_or_none(takes, hint="--takes"),
        "health_seconds": seconds_or_none(health, hint="--health"),
        "heartbeat_seconds": seconds_or_none(heartbeat, hint="--heartbeat"),
        "require_poll": require_poll or None,
        "driver": driver if driver != "simulated" else None,
    }
    return {key: value for key, value in given.items() if value is not None}


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


def _row(rollout: dict[str, Any]) -> tuple[object, ...]:
    return (
        console.short(rollout["id"]),
        rollout["action"],
        rollout["state"],
        len(rollout["hosts"]),
        _progress(rollout),
        words.at(rollout["created_at"]),
        rollout["by"],
        rollout["why"] or rollout["reason"],
    )


def _progress(rollout: dict[str, Any]) -> str:
    done = sum(wave["state"] == "done" for wave in rollout["waves"])
    return f"{done} of {len(rollout['waves'])} done"


def _show(rollout: dict[str, Any]) -> None:
    console.details(
        [
            ("rollout", rollout["id"]),
            ("action", rollout["action"]),
            ("state", rollout["state"]),
            ("waves", _progress(rollout)),
            ("by", rollout["by"]),
            ("reason", rollout["reason"]),
            ("begun", words.at(rollout["created_at"])),
            ("ended", words.at(rollout["ended_at"])),
            ("deadline", words.at(rollout["deadline"])),
            ("health", _health(rollout)),
            ("given up", rollout["given_up"]),
            ("why", rollout["why"]),
            ("notice", words.notice(rollout["notice"])),
        ]
    )
    console.say()
    rows = (
        (number, wave["state"], wave["hosts"], words.at(wave["ended_at"]))
        for number, wave in enumerate(rollout["waves"], start=1)
    )
    console.table(WAVES, rows, empty="No waves.")
    _show_reasons(rollout)


def _health(rollout: dict[str, Any]) -> str:
    polls = ", and has polled again if it did before" if rollout["require_poll"] else ""
    return f"a machine is healthy within {words.span(rollout['health_seconds'])}{polls}"


def _show_started(session: Session, rollout: dict[str, Any]) -> None:
    _show(rollout)
    _show_warnings(rollout)
    console.say(
        f"\n  Follow it:  {session.command('rollout show ' + console.short(rollout['id']) + ' --follow')}"
    )


def _show_plan(rollout: dict[str, Any]) -> None:
    waves = rollout["waves"]
    first, last = _time(waves[0]["announce_at"]), _time(rollout["ends_at"])
    rows = (
        (
            number,
            wave["hosts"],
            words.at(wave["announce_at"]),
            words.at(wave["start_at"]),
            words.at(wave["end_at"]),
            _bar(wave, first, last),
        )
        for number, wave in enumerate(waves, start=1)
    )
    console.table(TIMELINE, rows, empty="")
    length = words.between(waves[0]["announce_at"], rollout["ends_at"])
    console.say(f"\n{len(waves)} waves, {length} if nobody approves early ({NOTICE} notice, {WORK} work).")
    _show_reasons(rollout)
    _show_warnings(rollout)


def _bar(wave: dict[str, Any], first: datetime, last: datetime) -> str:
    """Draw one wave's share of the whole time."""
    whole = (last - first).total_seconds() or 1.0
    at, start, end = (
        round(WIDTH * (_time(wave[moment]) - first).total_seconds() / whole)
        for moment in ("announce_at", "start_at", "end_at")
    )
    return " " * at + NOTICE * (start - at) + WORK * max(end - start, 1)


def _show_reasons(rollout: dict[str, Any]) -> None:
    if not rollout["waiting"]:
        return
    console.say("\nWaiting:")
    show_waiting({"waiting": rollout["waiting"][:MOST_REASONS]})
    if len(rollout["waiting"]) > MOST_REASONS:
        console.say(f"  … and {len(rollout['waiting']) - MOST_REASONS} more (--json has all)")


def _show_warnings(rollout: dict[str, Any]) -> None:
    if rollout["warnings"]:
        console.say("\nWarnings:")
    for warning in rollout["warnings"]:
        console.say(f"  {warning}")


def _time(moment: str) -> datetime:
    return datetime.fromisoformat(moment)
