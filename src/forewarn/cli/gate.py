"""`forewarn gate`: your own runbook does the work; forewarn tells the guests first and says when to begin.

It announces, shows who has approved and who is awaited, waits until the stage may start, runs the command,
and completes or fails the order by the command's exit code. An order whose work failed, or whose gate has
gone, is taken up again by its id.
"""

import os
import shlex
import shutil
import subprocess
import sys
import threading
from typing import Annotated, Any, Literal

import typer

from forewarn.cli import console, words
from forewarn.cli.client import Refused, Unreachable
from forewarn.cli.complete import names
from forewarn.cli.durations import Deadline, Heartbeat, Takes, seconds_or_none
from forewarn.cli.find import whole_id
from forewarn.cli.session import Session, noun, with_session

app = noun("Announce, wait for the guests, then run your own command.")

# As often as a guest polls.
LOOK_EVERY = 1.0
# As long as a server lets an external driver be silent, unless it is told otherwise.
DEFAULT_SILENCE = 600.0
# So long an event stays listed after its start, unless a server is told otherwise.
DEFAULT_LINGER = 90
# Well within the limit after which silence is a failure.
BEATS_IN_LIMIT = 4

REPORTS = {
    "complete": "when it is done",
    "fail": "if it failed",
    "heartbeat": "now and then: silence for {silence} is a failure",
}

EXTERNAL = "external"

Id = Annotated[str, typer.Argument(metavar="ORDER", help="Its id, or how it begins.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask whether somebody else is at it.")]
HostName = Annotated[str, typer.Argument(metavar="HOST", show_default=False, autocompletion=names("hosts"))]
MachineName = Annotated[
    str, typer.Argument(metavar="MACHINE", show_default=False, autocompletion=names("machines"))
]
HostAction = Annotated[
    Literal["freeze", "reboot", "redeploy"],
    typer.Option("--action", help="What the command does to the machines.", show_default=False),
]
MachineAction = Annotated[
    Literal["restart", "redeploy", "freeze"],
    typer.Option("--action", help="What the command does to the machine.", show_default=False),
]
Command = Annotated[
    list[str] | None, typer.Argument(metavar="-- COMMAND...", help="Run when the work may begin.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Only wait until the work may begin, and run nothing.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the records.")]
Emergency = Annotated[
    str | None,
    typer.Option("--emergency", metavar="REASON", help="Shorten the notice; recorded as a broken promise."),
]


@app.command()
@with_session
def host(
    session: Session,
    name: HostName,
    action: HostAction,
    command: Command = None,
    wait: Wait = False,
    reason: Reason = "",
    emergency: Emergency = None,
    deadline: Deadline = None,
    takes: Takes = None,
    heartbeat: Heartbeat = None,
) -> None:
    """Gate work on a host and all it carries."""
    _check(command, wait=wait)
    body = {"action": action, **_terms(reason, heartbeat), "emergency": emergency, "deadline": deadline}
    body["expected_seconds"] = seconds_or_none(takes, hint="--takes")
    _run(session, session.client.post(f"/v1/hosts/{name}/maintenance", body)["order"], command)


@app.command()
@with_session
def machine(
    session: Session,
    name: MachineName,
    action: MachineAction,
    command: Command = None,
    wait: Wait = False,
    reason: Reason = "",
    heartbeat: Heartbeat = None,
) -> None:
    """Gate work on one machine."""
    _check(command, wait=wait)
    body = _terms(reason, heartbeat)
    answer = session.client.post(f"/v1/machines/{name}/{action}", body, **session.scope)
    _run(session, answer["order"], command)


@app.command()
@with_session
def order(session: Session, id_: Id, command: Command = None, wait: Wait = False, yes: Yes = False) -> None:
    """Take up an order again: its work failed, or its gate has gone."""
    _check(command, wait=wait)
    path = f"/v1/orders/{whole_id(session.client, 'orders', id_)}"
    found = session.client.get(path)["order"]
    if found["driver"] != EXTERNAL:
        raise Refused(
            f"order {found['id']} is done by the server itself: there is nothing to run for it here"
        )
    if found["ended_at"] is not None:
        raise Refused(f"order {found['id']} is over ({found['state']}): order the work anew")
    if found["state"] == "failed":
        found = session.client.post(f"{path}/retry")["order"]
    elif running := _under_way(found):
        _ask(found, running, yes=yes)
    _run(session, found, command)


def _terms(reason: str, heartbeat: str | None) -> dict[str, Any]:
    silence = seconds_or_none(heartbeat, hint="--heartbeat")
    return {"driver": EXTERNAL, "reason": reason, "heartbeat_seconds": silence}


def _under_way(order: dict[str, Any]) -> list[str]:
    return [step["machine"] for step in order["steps"] if step["state"] == "running"]


def _ask(order: dict[str, Any], machines: list[str], *, yes: bool) -> None:
    """Ask before work is begun that somebody may be doing at this moment."""
    if yes:
        return
    under_way = f"work on {words.listing(machines)} is under way, perhaps in other hands"
    if not sys.stdin.isatty():
        raise Refused(f"{under_way}: say --yes if nobody is at it any more")
    if not typer.confirm(f"{under_way[0].upper()}{under_way[1:]}. Do it here?", err=True):
        raise Refused(f"order {order['id']} is left to whoever is at it")


def _check(command: list[str] | None, *, wait: bool) -> None:
    """Refuse what could not be run before anybody is told of it: guests drain when they are told."""
    if not command and not wait:
        raise typer.BadParameter("nothing to run: give a command after --, or --wait")
    if command and shutil.which(command[0]) is None:
        raise typer.BadParameter(f"{command[0]} cannot be run: there is no such program here")


def _run(session: Session, order: dict[str, Any], command: list[str] | None) -> None:
    """See an order through."""
    silence = order["heartbeat_seconds"] or DEFAULT_SILENCE
    console.say(f"Order {order['id']}:")
    try:
        while (machines := _wait(session, order["id"])) is not None:
            if not command:
                console.say(f"The work may begin on {words.listing(machines)}. Report how it goes:")
                for report, when in REPORTS.items():
                    when = when.format(silence=words.span(silence))
                    console.say(f"  {session.command(f'order {report} ' + order['id'])}   # {when}")
                return
            _carry_out(session, order["id"], command, machines, silence=silence)
    except KeyboardInterrupt:
        _call_off(session, order["id"])
        raise typer.Exit(1) from None
    _show_notice(session, order["id"])


def _wait(session: Session, order: str) -> list[str] | None:
    """Wait until work may begin, and return on which machines; None if all of it is done.

    A host that carries two update domains of a group is done in two parts. Each change of who is awaited is
    told once.
    """
    said: list[str] = []
    pause = threading.Event()
    while True:
        seen = session.client.get(f"/v1/orders/{order}")
        steps, state = seen["order"]["steps"], seen["order"]["state"]
        if state in ("cancelled", "failed"):
            console.complain(
                f"Order {order} is {state}: {seen['order']['why'] or 'see forewarn order show'}."
            )
            raise typer.Exit(1)
        if running := _under_way(seen["order"]):
            return running
        if state == "done" or not any(step["state"] == "waiting" for step in steps):
            return None
        lines = _progress(seen)
        for line in lines:
            if line not in said:
                console.say(f"  {line}")
        said = lines
        pause.wait(LOOK_EVERY)


def _progress(seen: dict[str, Any]) -> list[str]:
    lines = []
    for event in seen["events"]:
        if event["ended_at"] is not None:
            continue
        names = words.listing(event["resources"])
        if event["status"] == "Started":
            lines.append(f"{event['type']} of {names}: {_lingers('done')}")
        elif event["approved"]:
            by = words.listing([each["by"] for each in event["approvals"]])
            lines.append(f"{event['type']} of {names}: approved by {by}")
        else:
            awaited = words.listing(event["awaited"])
            lines.append(
                f"{event['type']} of {names}: awaits {awaited}, until {words.at(event['not_before'])}"
            )
    if not lines:
        lines = [f"{each['what']}: {each['reason']}" for each in seen["order"]["waiting"]]
    return lines


def _lingers(state: str) -> str:
    return f"{state}; guests see it as over {DEFAULT_LINGER} s after it started, so that slow ones notice"


def _carry_out(
    session: Session, order: str, command: list[str], machines: list[str], *, silence: float
) -> None:
    """Run the command, and report how it ended; a failure ends this program with the command's code."""
    console.say(f"The work may begin on {words.listing(machines)}: {' '.join(command)}")
    stop = threading.Event()
    beats = threading.Thread(target=_beat, args=(session, order, silence, stop), daemon=True)
    beats.start()
    try:
        environment = os.environ | {"FOREWARN_ORDER": order, "FOREWARN_MACHINES": ",".join(machines)}
        code = subprocess.run(command, check=False, env=environment).returncode  # noqa: S603 - their runbook
        problem = f"{command[0]} ended with code {code}"
    except OSError as error:
        code, problem = 1, f"{command[0]} cannot be run: {error.strerror}"
    finally:
        stop.set()
        beats.join()
    if code == 0:
        session.client.post(f"/v1/orders/{order}/complete")
        console.say(f"Done with {words.listing(machines)}.")
        return
    session.client.post(f"/v1/orders/{order}/fail", {"reason": problem})
    console.complain(
        f"{problem}: order {order} has failed, and its events stay listed.\n"
        f"Try again with `{session.command(f'gate order {order} -- {shlex.join(command)}')}`, "
        f"or give up with `{session.command('order abandon ' + order)}`."
    )
    raise typer.Exit(code)


def _beat(session: Session, order: str, silence: float, stop: threading.Event) -> None:
    """Say now and then that the work goes on; a lost beat does no harm while the next one comes."""
    while not stop.wait(silence / BEATS_IN_LIMIT):
        try:
            session.client.post(f"/v1/orders/{order}/heartbeat")
        except (Refused, Unreachable):
            continue


def _show_notice(session: Session, order: str) -> None:
    """Tell what was promised and what was given."""
    for event in session.client.get(f"/v1/orders/{order}")["events"]:
        promised = words.between(event["announced_at"], event["not_before"])
        given = words.between(event["announced_at"], event["started_at"])
        early = " (approved early)" if event["approved"] else ""
        console.say(
            f"  {words.listing(event['resources'])}: promised {promised}, started after {given}{early}"
        )
        if event["ended_at"] is None:
            console.say(f"    {_lingers('still listed')}")


def _call_off(session: Session, order: str) -> None:
    try:
        session.client.post(f"/v1/orders/{order}/cancel")
        console.complain(f"Called off: order {order} is cancelled.")
    except Refused as refusal:
        console.complain(f"Order {order} goes on: {refusal}")
        if _under_way(session.client.get(f"/v1/orders/{order}")["order"]):
            again = session.command(f"gate order {order} --yes -- COMMAND")
            console.say("Nobody does its work now.")
            console.say(f"  Take it up again:  {again}")
            console.say(f"  Or report it:      {session.command(f'order complete {order}')}, or order fail")
