"""`forewarn host`: show hosts, declare them, and order something to be done to one."""

from collections.abc import Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forewarn.cli import terminal
from forewarn.cli.id_lookup import path_of
from forewarn.cli.options.host_options import with_urgency, with_work
from forewarn.cli.options.machine_options import amount, pairs
from forewarn.cli.options.shared_options import (
    Evacuate,
    HostArgument,
    HostWork,
    InPlace,
    OnlyNew,
    Reason,
    Returning,
    Whole,
    only_new_headers,
    service_mode,
)
from forewarn.cli.session import Noun, Session, as_typed
from forewarn.cli.views.host_view import show_host, show_hosts, show_waited_for
from forewarn.cli.views.order_view import show_order_on_host
from forewarn.cli.views.questions import Yes, ask_before_emergency, ask_before_failing
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import given
from forewarn.core.words import EXTERNAL, MaintenanceWord
from forewarn.wire.answers.fleet_answers import HostAnswer, HostWithMachinesAnswer, MachineAnswer
from forewarn.wire.answers.order_answers import OrderWithEventsAnswer

if TYPE_CHECKING:
    from forewarn.cli.views.host_filter import Filter

app = Noun()

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
    watch: Annotated[
        bool, typer.Option("--watch", help="On the host: load the rules, and follow the fleet and libvirt.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="On the host: compare what is loaded with what should be.")
    ] = False,
    status: Annotated[
        Path,
        typer.Option("--libvirt-status", metavar="FOLDER", help="Where libvirt keeps its domains' state."),
    ] = Path("/run/libvirt/qemu"),
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="STATE_DIRECTORY",
            help="With --watch: where the last fleet is saved, for a start while the server is away.",
        ),
    ] = None,
    reserve: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            envvar="FOREWARN_FILTER_RESERVE",
            help="An address that no guest may use, such as the router's; may be given several times.",
        ),
    ] = None,
) -> None:
    """Print nftables rules for a host: no guest uses the address or MAC of another machine of the fleet.

    No guest poses as the guest endpoint (169.254.169.254), a router or a DHCP server either.
    """
    from forewarn.cli.views.host_filter import Filter, differences, filter_rules

    if watch and check:
        raise typer.BadParameter("choose --watch or --check", param_hint="--watch")
    reserved = [_address(each) for each in reserve or ()]
    if watch:
        _watch_filter(session, name, status=status, state=state, reserved=reserved)
        return
    host = _host_name(session, name)
    fetch = partial(_all_machines, session.client)
    if not check:
        rules = filter_rules(Filter(host=host, machines=fetch(), reserved=reserved))
        session.print_answer({"rules": rules}, lambda: terminal.echo(rules))
        return
    from forewarn.cli.following.filter_watch import loaded, taps_of

    wanted = Filter(host=host, machines=fetch(), taps=taps_of(status), reserved=reserved)
    found = differences(wanted, loaded())
    answer = {"host": host, "loaded": not found, "differences": found, "unprotected": wanted.unbound}
    session.print_answer(answer, lambda: _show_check(session, wanted, found))
    if found:
        raise typer.Exit(1)


def _watch_filter(
    session: Session, name: str, *, status: Path, state: Path | None, reserved: Sequence[str]
) -> None:
    """Follow the fleet and the taps, from the saved fleet on if there is one."""
    from forewarn.cli.following.filter_watch import SERVER_SECONDS, FilterWatch, SavedFleet, taps_of

    saved = None if state is None else SavedFleet(state, name)
    if saved is None or (known := saved.read()) is None:
        host, machines = _host_name(session, name), None
    else:
        host, machines = known
        terminal.echo(f"until the server answers, the fleet is that of {saved.path}")
    FilterWatch(
        host,
        fetch=partial(_all_machines, session.client.answered_within(SERVER_SECONDS)),
        look=partial(taps_of, status),
        say=terminal.echo,
        reserved=reserved,
        machines=machines,
        save=(lambda _: None) if saved is None else partial(saved.write, host),
    ).watch()


def _host_name(session: Session, name: str) -> str:
    """Return the name of a host as the fleet has it."""
    return session.client.get(path_of("host", name), HostWithMachinesAnswer).value.name


def _address(given: str) -> str:
    try:
        return str(ip_address(given))
    except ValueError:
        raise typer.BadParameter(f"{given!r}: expected an address", param_hint="--reserve") from None


def _all_machines(client: OperatorClient) -> Sequence[MachineAnswer]:
    """Return the machines of the whole fleet: any of them may come to a host."""
    return client.all(MachineAnswer).value.items


def _show_check(session: Session, wanted: "Filter", found: Sequence[str]) -> None:
    for line in wanted.unbound:
        terminal.echo(f"Note: {line}.")
    if not found:
        pairs, taps = len(wanted.owners), len(wanted.taps)
        terminal.echo(f"The filter of {wanted.host} is loaded: {pairs} machines of the fleet, {taps} taps.")
        return
    for line in found:
        terminal.echo(line)
    follow = session.command(f"host filter {wanted.host} --watch")
    terminal.echo(f"Next: `{as_typed()} unit install filter` keeps the filter loaded; so does `{follow}`.")


@app.command()
def put(
    session: Session,
    name: HostArgument,
    driver: Annotated[
        str | None, typer.Option(metavar="DRIVER", help="Who does the work on it; '' clears it.")
    ] = None,
    uri: Annotated[
        str | None, typer.Option(metavar="URI", help="Where its driver reaches it; '' clears it.")
    ] = None,
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
    no_resources: Annotated[bool, typer.Option("--no-resources", help="Clear what it has.")] = False,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Clear its labels.")] = False,
    bare_metal: Annotated[
        bool | None,
        typer.Option("--bare-metal/--no-bare-metal", help="Whether it is the one machine that it carries."),
    ] = None,
    new: OnlyNew = False,
) -> None:
    """Add a host, or change what is given of one."""
    for cleared, values, option in ((no_resources, resource, "resources"), (no_labels, label, "labels")):
        if cleared and values:
            raise typer.BadParameter(f"it clears the host's {option}: give one", param_hint=f"--no-{option}")
    amounts = {key: amount(value) for key, value in pairs(resource, "--resource").items()}
    body = given(
        {
            "driver": driver,
            "uri": uri,
            "at_once": at_once,
            "resources": {} if no_resources else amounts or None,
            "labels": {} if no_labels else pairs(label, "--label") or None,
            "bare_metal": bare_metal,
        }
    )
    body |= {key: None for key in ("driver", "uri") if body.get(key) == ""}
    reply = session.client.call(
        "PUT", path_of("host", name), HostWithMachinesAnswer, body=body, headers=only_new_headers(new)
    )
    session.print_reply(reply, lambda host: show_host(session, host))


@app.command()
def delete(session: Session, name: HostArgument) -> None:
    """Take a host that carries nothing out of the fleet."""
    reply = session.client.call("DELETE", path_of("host", name), HostWithMachinesAnswer)
    session.print_reply(reply, lambda host: terminal.echo(f"{host.name} is no longer in the fleet."))


@app.command()
@with_work
def maintenance(
    session: Session,
    name: HostArgument,
    action: Action,
    body: dict[str, Any],
    whole: Whole = False,
    yes: Yes = False,
) -> None:
    """Do something to all machines of a host, one update domain of a group at a time."""
    _ask_first(session, name, body, yes=yes)
    _order(session, name, "maintenance", {"action": action, **body, "whole": whole or None})


@app.command()
@with_work
def service(
    session: Session,
    name: HostArgument,
    command: Command = None,
    evacuate: Evacuate = False,
    in_place: InPlace = False,
    returning: Returning = False,
    *,
    body: dict[str, Any],
    host_work: HostWork = None,
    yes: Yes = False,
) -> None:
    """Work on a host itself: machines leave it first, a few at a time, or restart with it.

    The host takes no machines meanwhile. A command after -- does the work, here, when it may begin; else the
    hook of the server's settings does, or who moves the machines.
    """
    mode = service_mode(evacuate=evacuate, in_place=in_place, returning=returning)
    if command and host_work not in (None, EXTERNAL):
        raise typer.BadParameter(f"the command after -- does the work on the host, not {host_work}")
    from forewarn.cli.gate.host_gate import check_program, run_on_host  # much for those who list hosts

    check_program(command)
    _ask_first(session, name, body, yes=yes)
    body |= {**mode, "host_work": EXTERNAL if command else host_work}
    if command:
        run_on_host(session, f"{path_of('host', name)}/service", body, command)
    else:
        _order(session, name, "service", body)


@app.command()
@with_urgency
def degrade(session: Session, name: HostArgument, body: dict[str, Any], yes: Yes = False) -> None:
    """Say that a host is going to fail: its machines move within days."""
    _ask_first(session, name, body, yes=yes)
    _order(session, name, "degrade", body)


@app.command()
def fail(
    session: Session, name: HostArgument, reason: Reason = None, fenced: Fenced = None, yes: Yes = False
) -> None:
    """Say that a host has failed: its machines come back on others, once it is fenced."""
    ask_before_failing(session, name, yes=yes)
    _order(session, name, "fail", {"reason": reason, "fenced": fenced})


@app.command()
def wait(session: Session, name: HostArgument, reason: Reason = None) -> None:
    """Give a lost host more time to come back."""
    reply = session.client.post(f"{path_of('host', name)}/wait", OrderWithEventsAnswer, {"reason": reason})
    session.print_reply(reply, lambda answer: show_waited_for(session, answer.order))


def _add_order(verb: str, about: str) -> None:
    @app.command(verb, help=about)
    def order(session: Session, name: HostArgument, reason: Reason = None) -> None:
        _order(session, name, verb, {"reason": reason})


for _verb, _about in {
    "restore": "Say that a host is sound again.",
    "cordon": "Let a host take no more machines.",
    "uncordon": "Let a host take machines again.",
}.items():
    _add_order(_verb, _about)


def _ask_first(session: Session, name: str, body: Mapping[str, Any], *, yes: bool) -> None:
    """Have a person agree to an emergency."""
    ask_before_emergency(session, name, emergency=body["emergency"], notice=body["notice_seconds"], yes=yes)


def _order(session: Session, name: str, verb: str, body: Mapping[str, Any]) -> None:
    reply = session.client.post(f"{path_of('host', name)}/{verb}", OrderWithEventsAnswer, body)
    session.print_reply(reply, lambda placed: show_order_on_host(session, placed))
