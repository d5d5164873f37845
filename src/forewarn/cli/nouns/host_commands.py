"""`forewarn host`: show hosts, declare them, and order something to be done to one."""

from collections.abc import Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from forewarn.cli import options, terminal
from forewarn.cli.command_group import PATH, argument, flag, option
from forewarn.cli.session import Noun, Session, as_typed
from forewarn.cli.views.host_view import show_host, show_hosts, show_waited_for
from forewarn.cli.views.order_view import show_order_on_host
from forewarn.cli.views.questions import YES, ask_before_emergency, ask_before_failing
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import given
from forewarn.core.basic_types import EXTERNAL, MaintenanceWord
from forewarn.wire.answers.fleet_answers import HostAnswer, HostWithMachinesAnswer, MachineAnswer
from forewarn.wire.answers.order_answers import OrderWithEventsAnswer

if TYPE_CHECKING:
    from forewarn.cli.views.host_filter import Filter

app = Noun()

FENCED = option(
    "--fenced", "REASON", "Vouch that it touches its machines no more; also for one that is failed already."
)
COMMAND = argument("command", "[-- COMMAND...]", "Run here when the work on the host may begin.", nargs=-1)
ACTION = option(
    "--action",
    None,
    "What is done to its machines.",
    type=click.Choice(get_args(MaintenanceWord)),
    required=True,
)


@app.verb()
def list_(session: Session) -> None:
    """List hosts."""
    session.print_reply(session.client.all(HostAnswer), lambda page: show_hosts(session, page.items))


@app.verb(options.HOST)
def show(session: Session, name: str) -> None:
    """Show a host and what it carries."""
    reply = session.client.get(options.path_of("host", name), HostWithMachinesAnswer)
    session.print_reply(reply, lambda host: show_host(session, host))


@app.verb(
    options.HOST,
    flag("--watch", "On the host: load the rules, and follow the fleet and libvirt."),
    flag("--check", "On the host: compare what is loaded with what should be."),
    option(
        "--libvirt-status status",
        "FOLDER",
        "Where libvirt keeps its domains' state.",
        type=PATH,
        default=Path("/run/libvirt/qemu"),
    ),
    option(
        "--state",
        "FOLDER",
        "With --watch: where the last fleet is saved, for a start while the server is away.",
        type=PATH,
        envvar="STATE_DIRECTORY",
    ),
    option(
        "--reserve",
        "ADDRESS",
        "An address that no guest may use, such as the router's; may be given several times.",
        multiple=True,
        envvar="FOREWARN_FILTER_RESERVE",
    ),
)
def filter_(
    session: Session,
    name: str,
    watch: bool,
    check: bool,
    status: Path,
    state: Path | None,
    reserve: tuple[str, ...],
) -> None:
    """Print nftables rules for a host: no guest uses the address or MAC of another machine of the fleet.

    No guest poses as the guest endpoint (169.254.169.254), a router or a DHCP server either.
    """
    from forewarn.cli.views.host_filter import Filter, differences, filter_rules

    if watch and check:
        raise click.BadParameter("choose --watch or --check", param_hint="--watch")
    reserved = [_address(each) for each in reserve]
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
        raise click.exceptions.Exit(1)


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
        fetch=partial(_all_machines, session.client.with_answer_timeout(SERVER_SECONDS)),
        look=partial(taps_of, status),
        say=terminal.echo,
        reserved=reserved,
        machines=machines,
        save=(lambda _: None) if saved is None else partial(saved.write, host),
    ).watch()


def _host_name(session: Session, name: str) -> str:
    """Return the name of a host as the fleet has it."""
    return session.client.get(options.path_of("host", name), HostWithMachinesAnswer).value.name


def _address(given: str) -> str:
    try:
        return str(ip_address(given))
    except ValueError:
        raise click.BadParameter(f"{given!r}: expected an address", param_hint="--reserve") from None


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


@app.verb(
    options.HOST,
    option("--driver", "DRIVER", "Who does the work on it; '' clears it."),
    option("--uri", "URI", "Where its driver reaches it; '' clears it."),
    option("--at-once", "N", "How many calls of its driver may run there together.", type=int),
    option(
        "--resource", "NAME=NUMBER[xRATIO]", "What it has, as vcpus=64x4; may be repeated.", multiple=True
    ),
    option("--label", "NAME=VALUE", "What machines may ask of it; may be repeated.", multiple=True),
    flag("--no-resources", "Clear what it has."),
    flag("--no-labels", "Clear its labels."),
    flag("--bare-metal/--no-bare-metal", "Whether it is the one machine that it carries.", default=None),
    options.ONLY_NEW,
)
def put(
    session: Session,
    name: str,
    driver: str | None,
    uri: str | None,
    at_once: int | None,
    resource: tuple[str, ...],
    label: tuple[str, ...],
    no_resources: bool,
    no_labels: bool,
    bare_metal: bool | None,
    new: bool,
) -> None:
    """Add a host, or change what is given of one."""
    for cleared, values, what in ((no_resources, resource, "resources"), (no_labels, label, "labels")):
        if cleared and values:
            raise click.BadParameter(f"it clears the host's {what}: give one", param_hint=f"--no-{what}")
    amounts = {key: options.amount(value) for key, value in options.pairs(resource, "--resource").items()}
    body = given(
        {
            "driver": driver,
            "uri": uri,
            "at_once": at_once,
            "resources": {} if no_resources else amounts or None,
            "labels": {} if no_labels else options.pairs(label, "--label") or None,
            "bare_metal": bare_metal,
        }
    )
    body |= {key: None for key in ("driver", "uri") if body.get(key) == ""}
    reply = options.put_in_fleet(session, "host", name, HostWithMachinesAnswer, body, new=new)
    session.print_reply(reply, lambda host: show_host(session, host))


@app.verb(options.HOST)
def delete(session: Session, name: str) -> None:
    """Take a host that carries nothing out of the fleet."""
    options.delete_from_fleet(session, "host", name, HostWithMachinesAnswer)


@app.verb(options.HOST, ACTION, *options.WORK, options.WHOLE, YES)
def maintenance(
    session: Session, name: str, action: MaintenanceWord, whole: bool, yes: bool, **typed: Any
) -> None:
    """Do something to all machines of a host, one update domain of a group at a time."""
    body = options.work(**typed)
    _ask_first(session, name, body, yes=yes)
    _order(session, name, "maintenance", {"action": action, **body, "whole": whole or None})


@app.verb(
    options.HOST,
    COMMAND,
    options.EVACUATE,
    options.IN_PLACE,
    options.RETURNING,
    *options.WORK,
    options.HOST_WORK,
    YES,
)
def service(
    session: Session,
    name: str,
    command: tuple[str, ...],
    evacuate: bool,
    in_place: bool,
    returning: bool,
    host_work: str | None,
    yes: bool,
    **typed: Any,
) -> None:
    """Work on a host itself: machines leave it first, a few at a time, or restart with it.

    The host takes no machines meanwhile. A command after -- does the work, here, when it may begin; else the
    hook of the server's settings does, or who moves the machines.
    """
    mode = options.service_mode(evacuate=evacuate, in_place=in_place, returning=returning)
    if command and host_work not in (None, EXTERNAL):
        raise click.BadParameter(f"the command after -- does the work on the host, not {host_work}")
    from forewarn.cli.gate.gate_run import check_program, run_on_host  # much for those who list hosts

    check_program(command)
    body = options.work(**typed)
    _ask_first(session, name, body, yes=yes)
    body |= {**mode, "host_work": EXTERNAL if command else host_work}
    if command:
        run_on_host(session, f"{options.path_of('host', name)}/service", body, command)
    else:
        _order(session, name, "service", body)


@app.verb(options.HOST, *options.URGENCY, YES)
def degrade(session: Session, name: str, yes: bool, **typed: Any) -> None:
    """Say that a host is going to fail: its machines move within days."""
    body = options.urgency(**typed)
    _ask_first(session, name, body, yes=yes)
    _order(session, name, "degrade", body)


@app.verb(options.HOST, options.REASON, FENCED, YES)
def fail(session: Session, name: str, reason: str | None, fenced: str | None, yes: bool) -> None:
    """Say that a host has failed: its machines come back on others, once it is fenced."""
    ask_before_failing(session, name, yes=yes)
    _order(session, name, "fail", {"reason": reason, "fenced": fenced})


@app.verb(options.HOST, options.REASON)
def wait(session: Session, name: str, reason: str | None) -> None:
    """Give a lost host more time to come back."""
    reply = session.client.post(
        f"{options.path_of('host', name)}/wait", OrderWithEventsAnswer, {"reason": reason}
    )
    session.print_reply(reply, lambda answer: show_waited_for(session, answer.order))


def _add_order(verb: str, about: str) -> None:
    @app.verb(options.HOST, options.REASON, about=about, name=verb)
    def order(session: Session, name: str, reason: str | None) -> None:
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
    reply = session.client.post(f"{options.path_of('host', name)}/{verb}", OrderWithEventsAnswer, body)
    session.print_reply(reply, lambda placed: show_order_on_host(session, placed))
