"""The text that the server prints when it has started: its addresses, and commands to try."""

import shlex
from collections.abc import Mapping, Sequence

from forewarn.config import OperatorSettings
from forewarn.console.console_paths import HOME
from forewarn.control.restored_store import Restored
from forewarn.core.basic_types import EXTERNAL, SIMULATED, OrderState
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.text_formats import counted
from forewarn.core.time_formats import format_time
from forewarn.version import version
from forewarn.wire.azure import offered

(DEFAULT_OPERATOR,) = OperatorSettings().listen
# The most open orders and rollouts that are listed.
SHOWN = 20
PATH = f"/metadata/scheduledevents?api-version={offered(preview=False)[-1].name}"


def addresses(
    *,
    guests: Sequence[str],
    operators: Sequence[str],
    origins: Sequence[str] = (),
    with_ports: Sequence[Machine],
    about: str,
) -> list[str]:
    """List the addresses of all ports; `with_ports` are the machines that have their own guest port.

    `origins` are the URLs of the console behind a proxy; they come first.
    """
    own = [machine.port for machine in with_ports]
    more = f"; {len(own)} machines have their own ports, {own[0]} to {own[-1]}" if own else ""
    more = f"; one machine has its own port, {own[0]}" if len(own) == 1 else more
    return [
        f"forewarn {version()} serves {about}",
        f"  guests     {', '.join(f'http://{each}' for each in guests)}, identified by source address{more}",
        f"  operators  {', '.join(operators)}",
        f"  console    {', '.join(f'{each}{HOME}' for each in (*origins, operators[0]))}",
    ]


def room(*, machines: int, operators: int, descriptors: int) -> str:
    """State how many connections are possible at once."""
    return (
        f"  room       for {counted(machines, 'machine')} and {counted(operators, 'operator')} at once, "
        f"with {descriptors} file descriptors"
    )


def work(hosts_by_driver: Mapping[str, int]) -> list[str]:
    """State on which hosts work is only simulated, and on which an outside program must report it."""
    texts = {
        SIMULATED: ("simulated", "nothing is really done"),
        EXTERNAL: (
            "done outside",
            "forewarn waits until a program reports that the work is done (forewarn gate --help)",
        ),
    }
    whole = sum(hosts_by_driver.values())
    lines = []
    for driver, (kind, effect) in texts.items():
        if hosts := hosts_by_driver.get(driver, 0):
            where = "" if hosts == whole else f" on {hosts} of {whole} hosts"
            lines.append(f"  work       {kind}{where}: {effect}")
    return lines


def things_to_try(
    with_ports: Sequence[Machine], *, command: str, operators: str, clock: str, empty: bool
) -> list[str]:
    """Show commands to try on a machine that has its own port, or how to declare a fleet."""
    forewarn = _command_line(command, operators)
    if empty:
        return [
            "There is no machine yet. Declare your fleet in a file (docs/reference/fleet-file.md), then:",
            f"  {forewarn} fleet apply FILE",
        ]
    if not with_ports:
        return []
    name, url = with_ports[0].name, f"http://127.0.0.1:{with_ports[0].port}{PATH}"
    return [
        "",
        "Try it, in another terminal:",
        f"  # poll as {name}, like any Azure client; the first poll enables Scheduled Events for its group",
        f"  curl -H Metadata:true '{url}'",
        "  # restart it; poll again to see the event",
        f"  {forewarn} machine restart {name}",
        f"  # approve as {name}, with the EventId of the poll; the restart starts at once",
        f"""  curl -H Metadata:true -d '{{"StartRequests":[{{"EventId":"…"}}]}}' '{url}'""",
        "  # watch the fleet, in a third terminal",
        f"  {forewarn} watch",
        "  # see what happened",
        f"  {forewarn} history",
        *_clock_hint(clock, forewarn),
        "",
    ]


def restored(found: Restored, *, command: str, operators: str) -> list[str]:
    """State that a backup is served for the first time, and list the open work in it."""
    forewarn, up_to = _command_line(command, operators), format_time(found.up_to)
    first = f"This store is a backup with all changes up to {up_to}, served for the first time"
    if found.hold is None:
        return [f"{first}. Open work in it continues now (--no-hold)."]
    lines = [_open_order(order) for order in found.orders] + [_open_rollout(each) for each in found.rollouts]
    held = f"{first}. The whole fleet is held."
    if not lines:
        return [f"{held} It has no open work; release the hold: {forewarn} release"]
    aborting = [f"    {forewarn} rollout abort ROLLOUT"] if found.rollouts else []
    more = [f"    … and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return [
        held,
        "  Until you release it, nothing new is announced or started. Without the hold, this work continues:",
        *lines[:SHOWN],
        *more,
        "  Cancel work that is already done or no longer wanted, and release the hold:",
        f"    {forewarn} order list",
        f"    {forewarn} order cancel ORDER",
        *aborting,
        f"    {forewarn} release",
    ]


def _command_line(command: str, operators: str) -> str:
    """Return the command with the option that selects this server, if it needs one."""
    elsewhere = "" if operators == f"http://{DEFAULT_OPERATOR}" else f" --server {operators}"
    return f"{shlex.quote(command)}{elsewhere}"


def _open_order(order: Order) -> str:
    begun = "; steps that have begun continue despite the hold" if order.state is OrderState.STARTED else ""
    target = f"host {order.host}" if order.host else order.machine_name
    return f"    order {order.id[:8]}: {order.action} of {target}, {order.state}, by {order.by}{begun}"


def _open_rollout(rollout: Rollout) -> str:
    hosts = counted(len(rollout.hosts), "host")
    return f"    rollout {rollout.id[:8]}: {rollout.work} of {hosts}, {rollout.state}, by {rollout.by}"


def _clock_hint(clock: str, forewarn: str) -> list[str]:
    match clock:
        case "manual":
            return ["  # advance the clock", f"  {forewarn} clock advance 15m"]
        case "system":
            return [
                "To save time, stop with Ctrl-C. With make run CLOCK=x60, each second is a minute. With",
                f"make run CLOCK=manual, {forewarn} clock advance 15m advances the time.",
            ]
        case _:
            return [f"Time runs at {clock}."]
