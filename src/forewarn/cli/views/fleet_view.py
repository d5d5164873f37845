"""A fleet as a fleet file without default values, and counted by update domain."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from forewarn.cli import terminal
from forewarn.core.basic_types import HostName, MachineName
from forewarn.core.model.declaration import HostSpec, MachineSpec
from forewarn.core.model.fleet_counts import DomainSummary, GroupSummary
from forewarn.core.model.group import GroupPolicy
from forewarn.core.time_formats import span_literal
from forewarn.wire import fields
from forewarn.wire.answers.fleet_answers import SummaryAnswer
from forewarn.wire.fleet import HOST, POLICY, write_machine, write_policy

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_POLICY = write_policy(GroupPolicy())
_HOST = fields.write(HostSpec(name=HostName("")), HOST)
_MACHINE = write_machine(MachineSpec(name=MachineName("")))

Row = tuple[GroupSummary, DomainSummary]


def fleet_file(fleet: Mapping[str, Any]) -> str:
    """Write a fleet file."""
    parts = [
        _table(f"[projects.{_key(name)}]", _project(project)) for name, project in fleet["projects"].items()
    ]
    for name, group in fleet["groups"].items():
        policy = group["policy"]
        parts.append(_table(f"[groups.{_key(name)}]", {key: group[key] for key in group if key != "policy"}))
        if asked := _asked(policy):
            parts.append(_table(f"[groups.{_key(name)}.policy]", asked))
    if fleet["defaults"]:
        parts.append(_table("[defaults]", fleet["defaults"]))
    parts.append(
        "\n".join(_table(f"[hosts.{_key(name)}]", _host(host)) for name, host in fleet["hosts"].items())
    )
    parts += [_table("[[machines]]", _machine(machine)) for machine in fleet["machines"]]
    return "\n\n".join(part for part in parts if part)


def _project(project: dict[str, Any]) -> dict[str, Any]:
    """Write the length of windows as a span."""
    if "windows" not in project:
        return project
    windows = [{**window, "length": span_literal(window["length"])} for window in project["windows"]]
    return {**project, "windows": windows}


def _asked(policy: dict[str, Any]) -> dict[str, Any]:
    """Leave out default values, and write spans of time as text."""
    return {
        key: span_literal(value) if key in POLICY and fields.is_span(POLICY[key]) else value
        for key, value in policy.items()
        if value != _POLICY.get(key)
    }


def _host(host: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in host.items() if value != _HOST.get(key)}


def _machine(machine: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in machine.items() if key == "project" or value != _MACHINE.get(key)}
    if machine["group"] is not None:
        kept.pop("project", None)  # its group names the project
    # An evicted machine has no host, and TOML has no null.
    return kept if "host" in kept else {**kept, "host": ""}


def _table(heading: str, values: dict[str, Any]) -> str:
    return "\n".join(
        [heading, *(f"{_key(key.replace('_', '-'))} = {_value(v)}" for key, v in values.items())]
    )


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    # JSON and TOML write texts and numbers in the same way.
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


DOMAINS = terminal.ItemTable[Row](
    columns={
        "GROUP": lambda row: row[0].name or "(standalone)",
        "PROJECT": lambda row: row[0].project,
        "KIND": lambda row: row[0].kind,
        "UD": lambda row: row[1].update_domain,
        "MACHINES": lambda row: row[1].machines,
        "STATES": lambda row: _by_state(row[1].states),
        "SCHEDULED": lambda row: row[1].scheduled,
        "STARTED": lambda row: row[1].started,
    },
    wraps=("STATES",),
    spare=("KIND",),
    spare_if_same=("PROJECT",),
    empty="No groups and no machines: `forewarn fleet apply FILE` declares a fleet.",
)


def show_summary(summary: SummaryAnswer) -> None:
    """Print the totals, and a row for each update domain."""
    terminal.details(_totals(summary))
    terminal.echo()
    DOMAINS.print((group, domain) for group in summary.groups for domain in group.update_domains)


def _totals(summary: SummaryAnswer) -> Iterator[tuple[str, object]]:
    yield "machines", _counted(summary.states)
    if summary.hosts is not None:
        yield "hosts", _counted(summary.hosts)
    yield "events", _counted(summary.events)
    yield "open orders", _counted(summary.orders)
    if summary.rollouts is not None:
        yield "open rollouts", _counted(summary.rollouts)
    if summary.holds is not None:
        yield "holds", summary.holds


def _counted(states: Mapping[str, int]) -> str:
    """Write a total and its states: `14 (13 running, 1 frozen)`."""
    total = sum(states.values())
    return f"{total} ({_by_state(states)})" if total else "none"


def _by_state(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.items() if count)
