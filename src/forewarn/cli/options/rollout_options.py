"""What a rollout shall do, as it is typed: `plan` and `start` take the same options, a gate most of them."""

import inspect
from typing import Annotated, Any

import typer

from forewarn.cli.options.body_options import with_body
from forewarn.cli.options.completion import names
from forewarn.cli.options.shared_options import (
    Deadline,
    Driver,
    Evacuate,
    Heartbeat,
    HostWork,
    InPlace,
    Reason,
    Returning,
    Takes,
    Together,
    Whole,
    seconds,
    seconds_or_none,
    service_mode,
)
from forewarn.core.words import MaintenanceWord, RolloutWord

Hosts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[HOST]...", help="Which hosts, in this order; or --all.", autocompletion=names("hosts")
    ),
]
All = Annotated[bool, typer.Option("--all", help="All hosts that have not failed.")]
Action = Annotated[
    RolloutWord,
    typer.Option("--action", help="What is done to their machines; service: to the hosts themselves."),
]
AtOnce = Annotated[int, typer.Option("--hosts-at-once", metavar="N", min=1, help="How many in a wave.")]
Gap = Annotated[str, typer.Option("--gap", metavar="DURATION", help="Between two waves, as 10m.")]
Health = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="How long after its work a machine may take to be healthy. Else 30m."
    ),
]
RequirePoll = Annotated[
    bool, typer.Option("--require-poll", help="A machine that polled before must have polled again.")
]
Overlap = Annotated[
    bool,
    typer.Option("--overlap", help="Even over hosts that another rollout has still to do."),
]

Canary = Annotated[
    int | None,
    typer.Option("--canary", metavar="N", min=0, help="So many hosts first, apart from all others."),
]
Soak = Annotated[
    str | None,
    typer.Option("--soak", metavar="DURATION", help="How long the others wait after the canaries."),
]
MaxFailures = Annotated[
    str | None,
    typer.Option(
        "--max-failures", metavar="N|N%", help="How many hosts may fail and are left out before it pauses."
    ),
]


def _body(
    hosts: Hosts = None,
    every: All = False,
    action: Action = "freeze",
    evacuate: Evacuate = False,
    in_place: InPlace = False,
    returning: Returning = False,
    host_work: HostWork = None,
    at_once: AtOnce = 1,
    gap: Gap = "0",
    deadline: Deadline = None,
    takes: Takes = None,
    health: Health = None,
    require_poll: RequirePoll = False,
    canary: Canary = None,
    soak: Soak = None,
    max_failures: MaxFailures = None,
    driver: Driver = None,
    overlap: Overlap = False,
    heartbeat: Heartbeat = None,
    whole: Whole = False,
    together: Together = None,
    reason: Reason = None,
) -> dict[str, Any]:
    """Make what is sent of what was typed; what was not is the server's to say."""
    if hosts and every:
        raise typer.BadParameter("name hosts or say --all, not both")
    if not hosts and not every:
        raise typer.BadParameter("name hosts, or say --all")
    return {
        "hosts": "all" if every else hosts,
        "action": action,
        **service_mode(evacuate=evacuate, in_place=in_place, returning=returning),
        "host_work": host_work,
        "hosts_at_once": at_once,
        "gap_seconds": seconds(gap, hint="--gap"),
        "deadline": deadline,
        "expected_seconds": seconds_or_none(takes, hint="--takes"),
        "health_seconds": seconds_or_none(health, hint="--health"),
        "heartbeat_seconds": seconds_or_none(heartbeat, hint="--heartbeat"),
        "require_poll": require_poll or None,
        "canary": canary,
        "soak_seconds": seconds_or_none(soak, hint="--soak"),
        "max_failures": max_failures,
        "driver": driver,
        "overlap": overlap or None,
        "whole": whole or None,
        "together": together,
        "reason": reason or None,
    }


with_rollout = with_body(_body, inspect.signature(_body).parameters.values())


GatedAction = Annotated[
    MaintenanceWord | None, typer.Option("--action", help="What the command does to their machines.")
]
# A gate says itself who does the work, and whether hosts are done in parts.
_SAID_BY_GATE = ("driver", "whole", "evacuate", "in_place", "returning", "host_work")
_OTHERWISE: dict[str, dict[str, Any]] = {"action": {"annotation": GatedAction, "default": None}}


def _gated_body(**typed: Any) -> dict[str, Any]:
    """Make what is sent, or nothing if no hosts are named."""
    if not typed["hosts"] and not typed["every"]:
        return {}
    if typed["action"] is None:
        raise typer.BadParameter("say --action: guests are told what the command does to them")
    return _body(**typed)


with_gated_rollout = with_body(
    _gated_body,
    [
        each.replace(**_OTHERWISE.get(each.name, {}))
        for each in inspect.signature(_body).parameters.values()
        if each.name not in _SAID_BY_GATE
    ],
)
