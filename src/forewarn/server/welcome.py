"""What is printed once the service answers: where it is, and what a newcomer may try."""

import shlex
from collections.abc import Sequence
from importlib.metadata import version

from forewarn.config import OperatorSettings
from forewarn.core.model.machine import Machine
from forewarn.wire.azure import VERSIONS

(DEFAULT_OPERATOR,) = OperatorSettings().listen
PATH = f"/metadata/scheduledevents?api-version={VERSIONS[-1].name}"


def addresses(
    *, guests: Sequence[str], operators: Sequence[str], players: Sequence[Machine], about: str
) -> list[str]:
    """Write where everything is; players are the machines with a port of their own."""
    own = [player.port for player in players]
    more = f"; {len(own)} machines have ports of their own, {own[0]} to {own[-1]}" if own else ""
    return [
        f"forewarn {version('forewarn')} serves {about}",
        f"  guests     {', '.join(f'http://{place}' for place in guests)}, known by their addresses{more}",
        f"  operators  {', '.join(operators)}",
    ]


def room(*, machines: int, operators: int, of: int) -> str:
    """Write how much can be connected at once."""
    return (
        f"  room       for {machines} machines and {operators} operators at once, with {of} file descriptors"
    )


def things_to_try(
    players: Sequence[Machine], *, command: str, operators: str, clock: str, empty: bool
) -> list[str]:
    """Write in a few lines what to try: with a machine that has a port of its own, or to declare a fleet."""
    elsewhere = "" if operators == f"http://{DEFAULT_OPERATOR}" else f" --server {operators}"
    forewarn = f"{shlex.quote(command)}{elsewhere}"
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
