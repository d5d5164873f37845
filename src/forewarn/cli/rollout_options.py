"""What a rollout shall do, as it is typed: `plan` and `start` take the same options, a gate most of them."""

from typing import Any, get_args

import click

from forewarn.cli.command_group import argument, flag, option
from forewarn.cli.completion import names
from forewarn.cli.options import (
    DEADLINE,
    DRIVER,
    EVACUATE,
    HEARTBEAT,
    HOST_WORK,
    IN_PLACE,
    REASON,
    RETURNING,
    TAKES,
    TOGETHER,
    WHOLE,
    seconds,
    seconds_or_none,
    service_mode,
)
from forewarn.core.words import MaintenanceWord, RolloutWord

_TERMS = (
    option("--hosts-at-once at_once", "N", "How many in a wave.", type=click.IntRange(min=1), default=1),
    option("--gap", "DURATION", "Between two waves, as 10m.", default="0"),
    DEADLINE,
    TAKES,
    option("--health", "DURATION", "How long after its work a machine may take to be healthy. Else 30m."),
    flag("--require-poll", "A machine that polled before must have polled again."),
    option("--canary", "N", "So many hosts first, apart from all others.", type=click.IntRange(min=0)),
    option("--soak", "DURATION", "How long the others wait after the canaries."),
    option("--max-failures", "N|N%", "How many hosts may fail and are left out before it pauses."),
)
_OVERLAP = flag("--overlap", "Even over hosts that another rollout has still to do.")
_ALL = flag("--all every", "All hosts that have not failed.")


def _hosts(metavar: str) -> click.Argument:
    about = "Which hosts, in this order; or --all."
    return argument("hosts", metavar, about, nargs=-1, shell_complete=names("hosts"))


ROLLOUT = (
    _hosts("[HOST]..."),
    _ALL,
    option(
        "--action",
        None,
        "What is done to their machines; service: to the hosts themselves.",
        type=click.Choice(get_args(RolloutWord)),
        default="freeze",
    ),
    EVACUATE,
    IN_PLACE,
    RETURNING,
    HOST_WORK,
    *_TERMS,
    DRIVER,
    _OVERLAP,
    HEARTBEAT,
    WHOLE,
    TOGETHER,
    REASON,
)
# A gate says itself who does the work, and whether hosts are done in parts.
GATED_ROLLOUT = (
    _hosts("[HOST]... -- COMMAND..."),
    _ALL,
    option(
        "--action",
        None,
        "What the command does to their machines.",
        type=click.Choice(get_args(MaintenanceWord)),
    ),
    *_TERMS,
    _OVERLAP,
    HEARTBEAT,
    TOGETHER,
    REASON,
)


def rollout_body(
    *,
    hosts: tuple[str, ...],
    every: bool,
    action: RolloutWord,
    at_once: int,
    gap: str,
    deadline: str | None,
    takes: str | None,
    health: str | None,
    require_poll: bool,
    canary: int | None,
    soak: str | None,
    max_failures: str | None,
    overlap: bool,
    heartbeat: str | None,
    together: str | None,
    reason: str | None,
    evacuate: bool = False,
    in_place: bool = False,
    returning: bool = False,
    host_work: str | None = None,
    driver: str | None = None,
    whole: bool = False,
) -> dict[str, Any]:
    """Make what is sent of what was typed; what was not is the server's to say."""
    if hosts and every:
        raise click.BadParameter("name hosts or say --all, not both")
    if not hosts and not every:
        raise click.BadParameter("name hosts, or say --all")
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


def gated_rollout_body(**typed: Any) -> dict[str, Any]:
    """Make what is sent, or nothing if no hosts are named."""
    if not typed["hosts"] and not typed["every"]:
        return {}
    if typed["action"] is None:
        raise click.BadParameter("say --action: guests are told what the command does to them")
    return rollout_body(**typed)
