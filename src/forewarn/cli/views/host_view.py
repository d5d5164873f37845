"""How commands show hosts: their machines, free resources, cordons, and choices after a loss."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from forewarn.cli import formatting, terminal
from forewarn.cli.session import Session
from forewarn.cli.views.order_view import name_order, show_waiting_of
from forewarn.client.replies import PAGE
from forewarn.core.basic_types import HostState, Mobility
from forewarn.wire.answers.fleet_answers import HostAnswer, HostWithMachinesAnswer, MachineAnswer
from forewarn.wire.answers.order_answers import OrderAnswer

# The ways in which machines leave their host.
WAYS = {
    Mobility.LIVE: "move live",
    Mobility.LIVE_ONLY: "move live or stay",
    Mobility.COLD: "restart elsewhere",
    Mobility.NONE: "cannot leave",
}


def show_host(session: Session, host: HostWithMachinesAnswer) -> None:
    """Print a host, its machines and how they can leave, and its orders."""
    machines = session.client.all(MachineAnswer, host=host.name).value.items
    orders = session.client.all(OrderAnswer, host=host.name, open=True).value.items
    coming = session.client.all(MachineAnswer, bound_for=host.name).value.items
    on_host = [order for order in orders if order.host == host.name]
    terminal.details(
        [
            ("name", host.name),
            ("state", _state(host)),
            ("driver", host.driver),
            ("URI", host.uri),
            ("source", host.source),
            *([("reachable", _reachable(host))] if host.reachable is not None else []),
            ("at once", host.at_once),
            ("free", "; ".join(_free(host, [*machines, *coming]))),
            ("labels", host.labels),
            *([("bare metal", "the host is its own only machine")] if host.bare_metal else []),
            ("machines", host.machines),
            *([("arriving", [machine.name for machine in coming])] if coming else []),
            *_ways(machines),
            ("projects", host.projects),
            *[("order", f"{terminal.short(each.id)}, {name_order(each)}, {each.state}") for each in on_host],
        ]
    )
    for order in on_host:
        show_waiting_of(session, order)
    if host.state is HostState.LOST:
        _show_choices(session, host)


def show_hosts(session: Session, hosts: Sequence[HostAnswer]) -> None:
    """Print a row for each host."""
    carried = session.client.page(MachineAnswer, limit=PAGE).value
    # Names of machines are unique only within a project.
    several = len({machine.project for machine in carried.items}) > 1
    on: dict[str | None, list[MachineAnswer]] = defaultdict(list)
    coming: dict[str | None, list[MachineAnswer]] = defaultdict(list)
    for machine in carried.items:
        on[machine.host].append(machine)
        coming[machine.bound_for].append(machine)
    columns: dict[str, Callable[[HostAnswer], object]] = {
        "HOST": lambda host: host.name,
        "STATE": _state,
        "DRIVER": lambda host: host.driver,
    }
    if any(host.reachable is not None for host in hosts):
        columns["REACHABLE"] = lambda host: {True: "yes", False: "no", None: ""}[host.reachable]
    columns["SOURCE"] = lambda host: host.source
    # The names of a large fleet would fill the screen; `host show` has them.
    if carried.next is None:
        if any(host.resources for host in hosts):
            columns["FREE"] = lambda host: ", ".join(
                _free(host, [*on[host.name], *coming[host.name]], briefly=True)
            )
        columns["MACHINES"] = lambda host: [
            f"{each.project}/{each.name}" if several else each.name for each in on[host.name]
        ]
    empty = "No hosts: `forewarn fleet apply FILE` declares a fleet."
    table = terminal.ItemTable(
        columns=columns,
        wraps=("STATE", "FREE", "MACHINES"),
        spare=("FREE", "SOURCE"),
        spare_if_same=("SOURCE",),
        empty=empty,
    )
    table.print(hosts)
    _show_unreachable(hosts)
    _show_lost(session, hosts)


def _state(host: HostAnswer) -> str:
    state: str = host.state
    if host.state is HostState.CORDONED and host.cordoned_for:
        state = f"{host.state} for {terminal.short(host.cordoned_for)}"
    if host.reachable is False:
        return "unreachable" if host.state is HostState.OK else f"{state}, unreachable"
    return state


def _reachable(host: HostAnswer) -> str:
    if host.reachable:
        return f"yes, at {formatting.utc(host.reached_at)}" if host.reached_at else "yes"
    since = f", since {formatting.utc(host.unreachable_since)}" if host.unreachable_since else ""
    last = f" (last reached at {formatting.utc(host.reached_at)})" if host.reached_at else ""
    return f"no{since}{last}: {host.unreachable_because or 'reason unknown'}"


def _free(host: HostAnswer, machines: Iterable[MachineAnswer], *, briefly: bool = False) -> list[str]:
    """Write how much of each resource the present and arriving machines leave free."""
    if host.bare_metal:  # its one machine has all resources
        return []
    taking, written = {machine.vm_id: machine for machine in machines}.values(), []
    for name, resource in host.resources.items():
        left = resource.capacity - sum(machine.resources.get(name, 0) for machine in taking)
        whole = "" if briefly else f" of {resource.capacity:g}"
        written.append(f"{left:g}{whole} {name}")
    return written


def _ways(machines: Iterable[MachineAnswer]) -> list[tuple[str, object]]:
    """Name the machines that can leave a host in each way."""
    by_way: dict[Mobility, list[str]] = defaultdict(list)
    for machine in machines:
        by_way[machine.mobility].append(machine.name)
    return [(label, by_way[way]) for way, label in WAYS.items() if by_way[way]]


def show_waited_for(session: Session, order: OrderAnswer) -> None:
    """Print how long the server waits for a lost host, and how to resume its rollout."""
    back_by = next((step.back_by for step in order.host_steps if step.back_by is not None), None)
    until = f", until {formatting.utc(back_by)}" if back_by else ""
    terminal.echo(f"{order.host}: waiting for the host{until}. When it comes back, its work continues.")
    if order.rollout:
        resume = session.command(f"rollout resume {terminal.short(order.rollout)}")
        terminal.echo_steps({"Resume the paused rollout": resume})


def _show_choices(session: Session, host: HostAnswer) -> None:
    """Print the choices for a host that did not come back."""
    wait, fail = (session.command(f"host {verb} {host.name}") for verb in ("wait", "fail"))
    terminal.echo("\nThe host did not come back from the work on it. Choose:")
    terminal.echo_wrapped(f"{wait}  gives it the same time again", indent="  ", hanging="    ")
    fenced = "fences the host, and recovers its machines on other hosts"
    terminal.echo_wrapped(f"{fail}  {fenced}", indent="  ", hanging="    ")


def _show_unreachable(hosts: Sequence[HostAnswer]) -> None:
    """Print why hosts are unreachable."""
    silent: dict[str | None, list[str]] = defaultdict(list)
    for host in hosts:
        if host.reachable is False:
            silent[host.unreachable_because].append(host.name)
    if silent:
        terminal.echo()
    for why, names in silent.items():
        terminal.echo_wrapped(f"{formatting.some(names)} cannot be reached: {why}", hanging="  ")


def _show_lost(session: Session, hosts: Sequence[HostAnswer]) -> None:
    """Print the command that shows the choices for lost hosts."""
    lost = [host.name for host in hosts if host.state is HostState.LOST]
    if lost:
        shown = session.command(f"host show {lost[0]}")
        named = formatting.listing(lost)
        terminal.echo()
        terminal.echo_wrapped(f"{named} did not come back from work: `{shown}` shows the choices.")
