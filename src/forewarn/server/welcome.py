"""What is printed once the service answers: where it is, and what a newcomer may try."""

import shlex
from collections.abc import Mapping, Sequence

from forewarn.config import OperatorSettings
from forewarn.console.console_paths import HOME
from forewarn.control.restored_store import Restored
from forewarn.core.basic_types import EXTERNAL, SIMULATED, OrderState
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.time_formats import format_time
from forewarn.core.text_formats import counted
from forewarn.version import version
from forewarn.wire.azure import offered

(DEFAULT_OPERATOR,) = OperatorSettings().listen
# More lines than that tell a person nothing.
SHOWN = 20
PATH = f"/metadata/scheduledevents?api-version={offered(preview=False)[-1].name}"


def addresses(
    *,
    guests: Sequence[str],
    operators: Sequence[str],
    origins: Sequence[str] = (),
    players: Sequence[Machine],
    about: str,
) -> list[str]:
    """Write where everything is; players are the machines with a port of their own.

    Origins are where browsers reach the console through a proxy; they come first.
    """
    own = [player.port for player in players]
    more = f"; {len(own)} machines have ports of their own, {own[0]} to {own[-1]}" if own else ""
    more = f"; a machine has a port of its own, {own[0]}" if len(own) == 1 else more
    return [
        f"forewarn {version()} serves {about}",
        f"  guests     {', '.join(f'http://{place}' for place in guests)}, known by their addresses{more}",
        f"  operators  {', '.join(operators)}",
        f"  console    {', '.join(f'{place}{HOME}' for place in (*origins, operators[0]))}",
    ]


def room(*, machines: int, operators: int, of: int) -> str:
    """Write how much can be connected at once."""
    return (
        f"  room       for {counted(machines, 'machine')} and {counted(operators, 'operator')} at once, "
        f"with {of} file descriptors"
    )


def work(hosts_by_driver: Mapping[str, int]) -> list[str]:
    """Write where nothing is really done, and where somebody must say when work is done."""
    simulated, outside = hosts_by_driver.get(SIMULATED, 0), hosts_by_driver.get(EXTERNAL, 0)
    whole = sum(hosts_by_driver.values())
    lines = []
    if simulated:
        where = "" if simulated == whole else f" on {simulated} of {whole} hosts"
        lines.append(f"  work       simulated{where}: nothing is really done")
    if outside:
        where = "" if outside == whole else f" on {outside} of {whole} hosts"
        lines.append(f"  work       done outside{where}: it waits for those who do it (forewarn gate --help)")
    return lines


def things_to_try(
    players: Sequence[Machine], *, command: str, operators: str, clock: str, empty: bool
) -> list[str]:
    """Write in a few lines what to try: with a machine that has a port of its own, or to declare a fleet."""
    forewarn = _typed(command, operators)
    if empty:
        return [
            "There is no machine yet. Declare your fleet in a file (docs/reference/fleet-file.md), then:",
            f"  {forewarn} fleet apply FILE",
        ]
    if not players:
        return []
    name, url = players[0].name, f"http://127.0.0.1:{players[0].port}{PATH}"
    return [
        "",
        "Try it, in another terminal:",
        f"  # poll as {name}, as any Azure client would; the first poll turns notice on for its group",
        f"  curl -H Metadata:true '{url}'",
        "  # restart it: now its guests are told first; poll again to see what",
        f"  {forewarn} machine restart {name}",
        f"  # approve as {name}, with the EventId that the poll shows; it starts at once",
        f"""  curl -H Metadata:true -d '{{"StartRequests":[{{"EventId":"…"}}]}}' '{url}'""",
        "  # watch the fleet as it lives, in a third terminal",
        f"  {forewarn} watch",
        "  # see what happened",
        f"  {forewarn} history",
        *_faster(clock, forewarn),
        "",
    ]


def restored(found: Restored, *, command: str, operators: str) -> list[str]:
    """Write that a backup is served for the first time, and what comes of that."""
    forewarn, up_to = _typed(command, operators), format_time(found.up_to)
    first = f"This is a backup, with everything up to {up_to}, and is served for the first time"
    if found.hold is None:
        return [f"{first}: what is open in it goes on at once (--no-hold)."]
    lines = [_open_order(order) for order in found.orders] + [_open_rollout(each) for each in found.rollouts]
    if not lines:
        return [f"{first}: the whole fleet is held. Nothing is open in it; lift the hold: {forewarn} release"]
    aborting = [f"    {forewarn} rollout abort ROLLOUT"] if found.rollouts else []
    more = [f"    … and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return [
        f"{first}: the whole fleet is held.",
        "  Nothing new is announced or started until you release it. Without the hold this would go on:",
        *lines[:SHOWN],
        *more,
        "  Cancel what is over by now, or not wanted any more, and lift the hold:",
        f"    {forewarn} order list",
        f"    {forewarn} order cancel ORDER",
        *aborting,
        f"    {forewarn} release",
    ]


def _typed(command: str, operators: str) -> str:
    """Write how the command is called for this server, and for no other."""
    elsewhere = "" if operators == f"http://{DEFAULT_OPERATOR}" else f" --server {operators}"
    return f"{shlex.quote(command)}{elsewhere}"


def _open_order(order: Order) -> str:
    begun = "; what was begun goes on all the same" if order.state is OrderState.STARTED else ""
    target = f"host {order.host}" if order.host else order.machine_name
    return f"    order {order.id[:8]}: {order.action} of {target}, {order.state}, by {order.by}{begun}"


def _open_rollout(rollout: Rollout) -> str:
    hosts = "1 host" if len(rollout.hosts) == 1 else f"{len(rollout.hosts)} hosts"
    return f"    rollout {rollout.id[:8]}: {rollout.work} of {hosts}, {rollout.state}, by {rollout.by}"


def _faster(clock: str, forewarn: str) -> list[str]:
    match clock:
        case "manual":
            return ["  # turn the clock", f"  {forewarn} clock advance 15m"]
        case "system":
            return [
                "Waiting takes too long? Stop with Ctrl-C; make run CLOCK=x60 makes each second a minute,",
                f"and with make run CLOCK=manual time moves when you say {forewarn} clock advance 15m.",
            ]
        case _:
            return [f"Time runs at {clock}."]
