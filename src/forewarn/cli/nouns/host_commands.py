"""`forewarn host`: show hosts, declare them, and order something to be done to one."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from forewarn.cli import terminal
from forewarn.cli.id_lookup import path_of
from forewarn.cli.options.machine_options import amount, pairs
from forewarn.cli.options.shared_options import (
    Deadline,
    Driver,
    Evacuate,
    Heartbeat,
    HostArgument,
    HostWork,
    InPlace,
    Reason,
    Returning,
    Takes,
    Together,
    Whole,
    seconds_or_none,
)
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.host_view import show_host, show_hosts, show_waited_for
from forewarn.cli.views.order_view import show_order_on_host
from forewarn.cli.views.questions import Yes, ask_before_emergency, ask_before_failing
from forewarn.client.replies import given
from forewarn.core.words import EXTERNAL, MaintenanceWord
from forewarn.wire.answers.fleet_answers import HostAnswer, HostWithMachinesAnswer, MachineAnswer
from forewarn.wire.answers.order_answers import OrderWithEventsAnswer

app = Noun()

Emergency = Annotated[
    str | None,
    typer.Option("--emergency", metavar="REASON", help="Give no notice; recorded as a broken promise."),
]
DespiteHold = Annotated[bool, typer.Option("--despite-hold", help="No hold stops the emergency.")]
Notice = Annotated[
    str | None, typer.Option("--notice", metavar="DURATION", help="Of an emergency, as 2m; left out: none.")
]
Fenced = Annotated[
    str | None,
    typer.Option(
        "--fenced",
        metavar="REASON",
        help="Vouch that it touches its machines no more; also for one that is failed already.",
    ),
]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND...]", help="Run here when the work on the host may begin."),
]
Action = Annotated[MaintenanceWord, typer.Option("--action", help="What is done to its machines.")]


@app.command("list")
def list_(session: Session) -> None:
    """List hosts."""
    session.print_reply(session.client.all(HostAnswer), lambda page: show_hosts(session, page.items))


@app.command()
def show(session: Session, name: HostArgument) -> None:
    """Show a host and what it carries."""
    reply = session.client.get(path_of("host", name), HostWithMachinesAnswer)
    session.print_reply(reply, lambda host: show_host(session, host))


@app.command("filter")
def filter_(
    session: Session,
    name: HostArgument,
    port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MACHINE=DEVICE",
            help="In which port of the bridge a machine's cable is; else its tag interface says.",
        ),
    ] = None,
) -> None:
    """Print nftables rules for the host's bridge: machines send with their own MAC and address alone."""
    from forewarn.cli.views.host_filter import filter_rules, read_ports

    host = session.client.get(path_of("host", name), HostWithMachinesAnswer).value
    carried = session.client.all(MachineAnswer, host=host.name).value.items
    coming = session.client.all(MachineAnswer, bound_for=host.name).value.items
    machines = [*carried, *(each for each in coming if each.host != host.name)]
    rules = filter_rules(host.name, machines, read_ports(port or ()))
    session.print_answer({"rules": rules}, lambda: terminal.echo(rules))


@app.command()
def put(
    session: Session,
    name: HostArgument,
    driver: Annotated[str | None, typer.Option(metavar="DRIVER", help="Who does the work on it.")] = None,
    uri: Annotated[str | None, typer.Option(metavar="URI", help="Where its driver reaches it.")] = None,
    at_once: Annotated[
        int | None, typer.Option(metavar="N", help="How many calls of its driver may run there together.")
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER[xRATIO]", help="What it has, as vcpus=64x4; may be repeated."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What machines may ask of it; may be repeated."),
    ] = None,
    bare_metal: Annotated[
        bool | None,
        typer.Option("--bare-metal/--no-bare-metal", help="Whether it is the one machine that it carries."),
    ] = None,
) -> None:
    """Add a host, or change what is given of one."""
    amounts = {key: amount(value) for key, value in pairs(resource, "--resource").items()}
    body = given(
        {
            "driver": driver,
            "uri": uri,
            "at_once": at_once,
            "resources": amounts or None,
            "labels": pairs(label, "--label") or None,
            "bare_metal": bare_metal,
        }
    )
    reply = session.client.call("PUT", path_of("host", name), HostWithMachinesAnswer, body=body)
    session.print_reply(reply, lambda host: show_host(session, host))


@app.command()
def delete(session: Session, name: HostArgument) -> None:
    """Take a host that carries nothing out of the fleet."""
    reply = session.client.call("DELETE", path_of("host", name), HostWithMachinesAnswer)
    session.print_reply(reply, lambda host: terminal.echo(f"{host.name} is no longer in the fleet."))


@app.command()
def maintenance(
    session: Session,
    name: HostArgument,
    action: Action,
    reason: Reason = None,
    emergency: Emergency = None,
    notice: Notice = None,
    despite_hold: DespiteHold = False,
    deadline: Deadline = None,
    takes: Takes = None,
    driver: Driver = None,
    heartbeat: Heartbeat = None,
    whole: Whole = False,
    together: Together = None,
    yes: Yes = False,
) -> None:
    """Do something to all machines of a host, one update domain of a group at a time."""
    urgency = _urgency(emergency, notice, despite_hold=despite_hold)
    _ask_first(session, name, urgency, yes=yes)
    done = _work(driver, deadline, takes=takes, heartbeat=heartbeat)
    terms = {"action": action, **urgency, **done, "whole": whole or None, "together": together}
    _order(session, name, "maintenance", reason, **terms)


@app.command()
def service(
    session: Session,
    name: HostArgument,
    command: Command = None,
    evacuate: Evacuate = False,
    in_place: InPlace = False,
    returning: Returning = False,
    reason: Reason = None,
    emergency: Emergency = None,
    notice: Notice = None,
    despite_hold: DespiteHold = False,
    deadline: Deadline = None,
    takes: Takes = None,
    driver: Driver = None,
    host_work: HostWork = None,
    heartbeat: Heartbeat = None,
    together: Together = None,
    yes: Yes = False,
) -> None:
    """Work on a host itself: machines leave it first, a few at a time, or restart with it.

    The host takes no machines meanwhile. A command after -- does the work, here, when it may begin; else the
    hook of the server's settings does, or who moves the machines.
    """
    if evacuate and in_place:
        raise typer.BadParameter("say --evacuate or --in-place, not both")
    if returning and in_place:
        raise typer.BadParameter("--in-place moves no machine, so that none can --return")
    if command and host_work not in (None, EXTERNAL):
        raise typer.BadParameter(f"the command after -- does the work on the host, not {host_work}")
    from forewarn.cli.gate.host_gate import check_program, run_on_host  # much for those who list hosts

    check_program(command)
    urgency = _urgency(emergency, notice, despite_hold=despite_hold)
    _ask_first(session, name, urgency, yes=yes)
    terms = {
        "mode": "in-place" if in_place else "evacuate" if evacuate else None,
        "returning": returning or None,
        **urgency,
        **_work(driver, deadline, takes=takes, heartbeat=heartbeat),
        "host_work": EXTERNAL if command else host_work,
        "together": together,
    }
    if command:
        path = f"{path_of('host', name)}/service"
        run_on_host(session, path, {**terms, "reason": reason}, command)
    else:
        _order(session, name, "service", reason, **terms)


@app.command()
def degrade(
    session: Session,
    name: HostArgument,
    reason: Reason = None,
    emergency: Emergency = None,
    notice: Notice = None,
    despite_hold: DespiteHold = False,
    yes: Yes = False,
) -> None:
    """Say that a host is going to fail: its machines move within days."""
    urgency = _urgency(emergency, notice, despite_hold=despite_hold)
    _ask_first(session, name, urgency, yes=yes)
    _order(session, name, "degrade", reason, **urgency)


@app.command()
def fail(
    session: Session, name: HostArgument, reason: Reason = None, fenced: Fenced = None, yes: Yes = False
) -> None:
    """Say that a host has failed: its machines come back on others, once it is fenced."""
    ask_before_failing(session, name, yes=yes)
    _order(session, name, "fail", reason, fenced=fenced)


@app.command()
def wait(session: Session, name: HostArgument, reason: Reason = None) -> None:
    """Give a lost host more time to come back."""
    reply = session.client.post(f"{path_of('host', name)}/wait", OrderWithEventsAnswer, {"reason": reason})
    session.print_reply(reply, lambda answer: show_waited_for(session, answer.order))


def _add_order(verb: str, about: str) -> None:
    @app.command(verb, help=about)
    def order(session: Session, name: HostArgument, reason: Reason = None) -> None:
        _order(session, name, verb, reason)


for _verb, _about in {
    "restore": "Say that a host is sound again.",
    "cordon": "Let a host take no more machines.",
    "uncordon": "Let a host take machines again.",
}.items():
    _add_order(_verb, _about)


def _urgency(emergency: str | None, notice: str | None, *, despite_hold: bool) -> dict[str, Any]:
    """Return what is asked for of promises that are not kept."""
    ahead = seconds_or_none(notice, hint="--notice")
    return {"emergency": emergency, "notice_seconds": ahead, "despite_hold": despite_hold or None}


def _ask_first(session: Session, name: str, urgency: Mapping[str, Any], *, yes: bool) -> None:
    """Have a person agree to an emergency."""
    emergency, ahead = urgency["emergency"], urgency["notice_seconds"]
    ask_before_emergency(session, name, emergency=emergency, notice=ahead, yes=yes)


def _work(
    driver: str | None, deadline: str | None, *, takes: str | None, heartbeat: str | None
) -> dict[str, Any]:
    """Return who does the work, until when, how long it takes and how long it may be silent."""
    return {
        "driver": driver,
        "deadline": deadline,
        "expected_seconds": seconds_or_none(takes, hint="--takes"),
        "heartbeat_seconds": seconds_or_none(heartbeat, hint="--heartbeat"),
    }


def _order(session: Session, name: str, verb: str, reason: str | None, **more: object) -> None:
    body = {**more, "reason": reason}
    reply = session.client.post(f"{path_of('host', name)}/{verb}", OrderWithEventsAnswer, body)
    session.print_reply(reply, lambda placed: show_order_on_host(session, placed))
