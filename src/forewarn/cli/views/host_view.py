"""Hosts as people see them: what they carry and what is left, for whom they are cordoned, what to choose."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from forewarn.cli import formatting, terminal
from forewarn.cli.session import Session
from forewarn.cli.views.order_view import name_order, show_waiting_of
from forewarn.client.replies import PAGE
from forewarn.core.basic_types import HostState, Mobility
from forewarn.wire.answers.fleet_answers import HostAnswer, HostWithMachinesAnswer, MachineAnswer
from forewarn.wire.answers.order_answers import OrderAnswer

# How machines leave their host.
WAYS = {
    Mobility.LIVE: "move live",
    Mobility.LIVE_ONLY: "move live or stay",
    Mobility.COLD: "restart elsewhere",
    Mobility.NONE: "stay on it",
}


def show_host(session: Session, host: HostWithMachinesAnswer) -> None:
    """Print a host, how its machines can leave it, and what is done to it or keeps it."""
    machines = session.client.all(MachineAnswer, host=host.name).value.items
    orders = session.client.all(OrderAnswer, host=host.name, open=True).value.items
    coming = session.client.all(MachineAnswer, bound_for=host.name).value.items
    on_host = [order for order in orders if order.host == host.name]
    terminal.details(
        [
            ("name", host.name),
            ("state", _state(host)),
            ("driver", host.driver),
            ("uri", host.uri),
            ("source", host.source),
            *([("reached", _reached(host))] if host.reachable is not None else []),
            ("at once", host.at_once),
            ("left", "; ".join(_left(host, [*machines, *coming]))),
            ("labels", host.labels),
            *([("bare metal", "it is itself the machine that it carries")] if host.bare_metal else []),
            ("machines", host.machines),
            *([("on their way", [machine.name for machine in coming])] if coming else []),
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
    # A machine's name is unique only within its project.
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
        columns["REACHED"] = lambda host: {True: "yes", False: "no", None: ""}[host.reachable]
    columns["SOURCE"] = lambda host: host.source
    # In a fleet of many pages the names would fill the screen; `show` has them.
    if carried.next is None:
        if any(host.resources for host in hosts):
            columns["LEFT"] = lambda host: ", ".join(
                _left(host, [*on[host.name], *coming[host.name]], briefly=True)
            )
        columns["CARRIES"] = lambda host: [
            f"{each.project}/{each.name}" if several else each.name for each in on[host.name]
        ]
    empty = "No hosts: `forewarn fleet apply FILE` declares a fleet."
    table = terminal.ItemTable(
        columns=columns,
        wraps=("STATE", "LEFT", "CARRIES"),
        spare=("LEFT", "SOURCE"),
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


def _reached(host: HostAnswer) -> str:
    if host.reachable:
        return f"yes, at {formatting.utc(host.reached_at)}" if host.reached_at else "yes"
    since = f", since {formatting.utc(host.unreachable_since)}" if host.unreachable_since else ""
    last = f" (last reached at {formatting.utc(host.reached_at)})" if host.reached_at else ""
    return f"no{since}{last}: {host.unreachable_because or 'its driver has not said why yet'}"


def _left(host: HostAnswer, machines: Iterable[MachineAnswer], *, briefly: bool = False) -> list[str]:
    """Write how much of each resource is not taken by the machines that are there, or on their way."""
    if host.bare_metal:  # all of it is its one machine's
        return []
    taking, written = {machine.vm_id: machine for machine in machines}.values(), []
    for name, resource in host.resources.items():
        left = resource.capacity - sum(machine.resources.get(name, 0) for machine in taking)
        whole = "" if briefly else f" of {resource.capacity:g}"
        written.append(f"{left:g}{whole} {name}")
    return written


def _ways(machines: Iterable[MachineAnswer]) -> list[tuple[str, object]]:
    """Name the machines that can leave a host by each way."""
    by_way: dict[Mobility, list[str]] = defaultdict(list)
    for machine in machines:
        by_way[machine.mobility].append(machine.name)
    return [(label, by_way[way]) for way, label in WAYS.items() if by_way[way]]


def show_waited_for(session: Session, order: OrderAnswer) -> None:
    """Print until when a host is waited for that was lost, and how its rollout goes on."""
    back_by = next((step.back_by for step in order.host_steps if step.back_by is not None), None)
    until = f", until {formatting.utc(back_by)}" if back_by else ""
    terminal.echo(f"{order.host}: waited for{until}. If it comes back, its work goes on by itself.")
    if order.rollout:
        resume = session.command(f"rollout resume {terminal.short(order.rollout)}")
        terminal.echo(f"  Its rollout stays paused:  {resume}")


def _show_choices(session: Session, host: HostAnswer) -> None:
    """Print what there is to choose for a host that did not come back."""
    wait, fail = (session.command(f"host {verb} {host.name}") for verb in ("wait", "fail"))
    terminal.echo("\nIt has not come back from the work on it. Choose:")
    terminal.fold(f"{wait}  gives it as much time again", indent="  ", hanging="    ")
    fenced = "fences it, then its machines come back on other hosts"
    terminal.fold(f"{fail}  {fenced}", indent="  ", hanging="    ")


def _show_unreachable(hosts: Sequence[HostAnswer]) -> None:
    """Print why hosts cannot be reached: what is to be done there waits."""
    silent: dict[str | None, list[str]] = defaultdict(list)
    for host in hosts:
        if host.reachable is False:
            silent[host.unreachable_because].append(host.name)
    if silent:
        terminal.echo()
    for why, names in silent.items():
        terminal.fold(f"{formatting.some(names)} cannot be reached: {why}", hanging="  ")


def _show_lost(session: Session, hosts: Sequence[HostAnswer]) -> None:
    """Print how to learn what to choose, if hosts are lost."""
    lost = [host.name for host in hosts if host.state is HostState.LOST]
    if lost:
        shown = session.command(f"host show {lost[0]}")
        named = formatting.listing(lost)
        terminal.echo()
        terminal.fold(f"{named} did not come back from the work on it: `{shown}` says what to choose.")
