"""`forewarn host`: show and declare hosts, order work on them, and filter what their guests send."""

from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from forewarn.cli import options, terminal
from forewarn.cli.command_group import PATH, WrongUsage, argument, flag, option
from forewarn.cli.session import Noun, Session, program_name
from forewarn.cli.views.confirmation import YES, ask_before_emergency, ask_before_failing
from forewarn.cli.views.host_view import show_host, show_hosts, show_waited_for
from forewarn.cli.views.order_view import show_order_on_host
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import given
from forewarn.core.basic_types import EXTERNAL, Action, MaintenanceWord
from forewarn.wire.answers.fleet_answers import HostAnswer, HostWithMachinesAnswer, MachineAnswer
from forewarn.wire.answers.order_answers import OrderWithEventsAnswer

if TYPE_CHECKING:
    from forewarn.cli.views.host_filter import Filter

app = Noun()

FENCED = option(
    "--fenced", "REASON", "Confirm that the host is powered off or isolated; also for a host that has failed."
)
COMMAND = argument(
    "command", "[-- COMMAND...]", "A command that does the work on the host, run here.", nargs=-1
)
ACTION = option(
    "--action",
    None,
    "The work on each machine.",
    type=click.Choice(get_args(MaintenanceWord)),
    required=True,
)


@app.verb()
def list_(session: Session) -> None:
    """List hosts."""
    session.print_reply(session.client.all(HostAnswer), lambda page: show_hosts(session, page.items))


@app.verb(options.HOST)
def show(session: Session, name: str) -> None:
    """Show a host and its machines."""
    reply = session.client.get(options.path_of("host", name), HostWithMachinesAnswer)
    session.print_reply(reply, lambda host: show_host(session, host))


@app.verb(
    options.HOST,
    flag("--watch", "On the host: load the rules, and follow changes of the fleet and of libvirt."),
    flag("--check", "On the host: compare the loaded rules with the expected ones."),
    option(
        "--libvirt-status status",
        "FOLDER",
        "The folder where libvirt keeps the state of its domains.",
        type=PATH,
        default=Path("/run/libvirt/qemu"),
    ),
    option(
        "--state",
        "FOLDER",
        "With --watch: save the fleet here, to start while the server is unreachable.",
        type=PATH,
        envvar="STATE_DIRECTORY",
    ),
    option(
        "--reserve",
        "ADDRESS",
        "An address that no guest may use, such as the router's. Repeatable.",
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
    """Print nftables rules that prevent the guests of a host from spoofing addresses.

    A guest cannot use the address or the MAC of another machine of the fleet. It cannot act as the guest
    endpoint (169.254.169.254), as a router or as a DHCP server.
    """
    from forewarn.cli.views.host_filter import Filter, differences, filter_rules

    if watch and check:
        raise WrongUsage("--watch, --check", "choose one of them")
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
    from forewarn.cli.live.filter_watch import loaded, taps_of

    wanted = Filter(host=host, machines=fetch(), taps=taps_of(status), reserved=reserved)
    found = differences(wanted, loaded())
    answer = {"host": host, "loaded": not found, "differences": found, "unprotected": wanted.unbound}
    session.print_answer(answer, lambda: _show_check(session, wanted, found))
    if found:
        raise click.exceptions.Exit(1)


def _watch_filter(
    session: Session, name: str, *, status: Path, state: Path | None, reserved: Sequence[str]
) -> None:
    """Follow the fleet and the taps; start from the saved fleet if there is one."""
    from forewarn.cli.live.filter_watch import SERVER_SECONDS, FilterWatch, SavedFleet, taps_of

    saved = None if state is None else SavedFleet(state, name)
    if saved is None or (known := saved.read()) is None:
        host, machines = _host_name(session, name), None
    else:
        host, machines = known
        terminal.echo(f"using the fleet in {saved.path} until the server answers")
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
    """Return the name of a host in the spelling of the fleet."""
    return session.client.get(options.path_of("host", name), HostWithMachinesAnswer).value.name


def _address(typed: str) -> str:
    try:
        return str(ip_address(typed))
    except ValueError:
        raise WrongUsage("--reserve", f"expected an IP address, got {typed!r}") from None


def _all_machines(client: OperatorClient) -> Sequence[MachineAnswer]:
    """Return the machines of the whole fleet, because any of them may move to the host."""
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
    terminal.echo(f"Keep the filter loaded with `{program_name()} unit install filter` or with `{follow}`.")


@app.verb(
    options.HOST,
    option("--driver", "DRIVER", "The driver that does the work on the host; '' clears it."),
    option("--uri", "URI", "Where the driver reaches the host; '' clears it."),
    option("--at-once", "N", "How many calls of the driver may run there at once.", type=int),
    option(
        "--resource resources",
        "NAME=NUMBER[xRATIO]",
        "A resource that it offers, such as vcpus=64x4. Repeatable.",
        multiple=True,
    ),
    option("--label labels", "NAME=VALUE", "A label that machines may require. Repeatable.", multiple=True),
    flag("--no-resources", "Clear the resources."),
    flag("--no-labels", "Clear the labels."),
    flag("--bare-metal/--no-bare-metal", "Whether the host is its own only machine.", default=None),
    options.ONLY_NEW,
)
def put(
    session: Session,
    name: str,
    resources: tuple[str, ...],
    labels: tuple[str, ...],
    no_resources: bool,
    no_labels: bool,
    new: bool,
    **typed: Any,
) -> None:
    """Add a host, or change the given fields of one."""
    for cleared, values, what in ((no_resources, resources, "resource"), (no_labels, labels, "label")):
        if cleared and values:
            raise WrongUsage(f"--no-{what}s, --{what}", "choose one of them")
    amounts = {
        key: options.host_amount(value) for key, value in options.pairs(resources, "--resource").items()
    }
    body = given(
        {
            **typed,
            "resources": {} if no_resources else amounts or None,
            "labels": {} if no_labels else options.pairs(labels, "--label") or None,
        }
    )
    body |= {key: None for key in ("driver", "uri") if body.get(key) == ""}
    reply = options.put_in_fleet(session, "host", name, HostWithMachinesAnswer, body, new=new)
    session.print_reply(reply, lambda host: show_host(session, host))


@app.verb(options.HOST)
def delete(session: Session, name: str) -> None:
    """Remove an empty host from the fleet."""
    options.delete_from_fleet(session, "host", name, HostWithMachinesAnswer)


@app.verb(options.HOST, ACTION, *options.WORK, options.WHOLE, YES)
def maintenance(session: Session, name: str, yes: bool, **body: Any) -> None:
    """Freeze, reboot or redeploy all machines of a host, one update domain of a group at a time."""
    ask_before_emergency(session, name, body, yes=yes)
    _order(session, name, Action.MAINTENANCE, body)


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
    returning: bool | None,
    yes: bool,
    **body: Any,
) -> None:
    """Work on a host itself, after its machines have moved off or while they restart with it.

    The host accepts no machines meanwhile. A command after -- does the work and runs here. Without one, the
    hook in the server's settings does the work, or the driver of the host.
    """
    body |= options.service_mode(evacuate=evacuate, in_place=in_place, returning=returning)
    if command:
        if body["host_work"] not in (None, EXTERNAL):
            raise WrongUsage("--host-work", "the command after -- does this work")
        body["host_work"] = EXTERNAL
    from forewarn.cli.gate.order_gate import check_program, run_on_host  # slow to import

    check_program(command)
    ask_before_emergency(session, name, body, yes=yes)
    if command:
        run_on_host(session, f"{options.path_of('host', name)}/service", body, command)
    else:
        _order(session, name, Action.SERVICE, body)


@app.verb(options.HOST, *options.URGENCY, YES)
def degrade(session: Session, name: str, yes: bool, **body: Any) -> None:
    """Report that a host is going to fail; its machines move within days."""
    ask_before_emergency(session, name, body, yes=yes)
    _order(session, name, Action.DEGRADE, body)


@app.verb(options.HOST, options.REASON, FENCED, YES)
def fail(session: Session, name: str, yes: bool, **body: Any) -> None:
    """Report that a host has failed; its machines recover elsewhere once it is fenced."""
    ask_before_failing(session, name, yes=yes)
    _order(session, name, Action.FAIL, body)


@app.verb(options.HOST, options.REASON)
def wait(session: Session, name: str, **body: Any) -> None:
    """Give a lost host more time to come back."""
    reply = session.client.post(f"{options.path_of('host', name)}/wait", OrderWithEventsAnswer, body)
    session.print_reply(reply, lambda answer: show_waited_for(session, answer.order))


def _add_order(action: Action, about: str) -> None:
    @app.verb(options.HOST, options.REASON, about=about, name=action.value)
    def order(session: Session, name: str, **body: Any) -> None:
        _order(session, name, action, body)


_add_order(Action.RESTORE, "Report that a host works again.")
_add_order(Action.CORDON, "Stop a host from accepting machines.")
_add_order(Action.UNCORDON, "Let a host accept machines again.")


def _order(session: Session, name: str, action: Action, body: dict[str, Any]) -> None:
    reply = session.client.post(f"{options.path_of('host', name)}/{action}", OrderWithEventsAnswer, body)
    session.print_reply(reply, lambda placed: show_order_on_host(session, placed))
