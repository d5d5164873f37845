"""Scenario files in TOML, and the scenarios that forewarn ships. An error names the field."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from forewarn.clock import clock_of
from forewarn.core.basic_types import Action, Priority
from forewarn.core.catalogue import ACTIONS, MAINTENANCE_WORK, ON_HOSTS, ON_MACHINES
from forewarn.core.errors import Invalid, NotFound
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.rehearsal_rules import Fault, FaultKind
from forewarn.core.time_formats import parse_span
from forewarn.core.toml_text import parse_toml
from forewarn.rehearsal.scenario import (
    CancelStep,
    Expectation,
    FaultStep,
    GuestCommand,
    OrderStep,
    Probe,
    Scenario,
    ScenarioStep,
    Start,
)
from forewarn.wire import fields
from forewarn.wire.fields import Readers
from forewarn.wire.fleet import read_fleet
from forewarn.wire.texts import either, shown

SUFFIX = ".toml"


def read_scenario(text: str, *, default_fleet: Mapping[str, object]) -> Scenario:
    """Parse a scenario; Invalid names the first wrong field."""
    tables = fields.read({"steps": (), **parse_toml(text, name="the file")}, _SCENARIO_FILE, "")
    head = fields.read(tables.get("scenario", {}), _HEAD, "scenario.")
    fields.require(head, {"name": "a name"}, "scenario.")
    fleet = _fleet(tables.get("fleet", default_fleet))
    steps = tuple(_step(value, f"steps[{index}]", fleet) for index, value in enumerate(tables["steps"]))
    guests = tuple(
        _guest(value, f"guests[{index}]", fleet) for index, value in enumerate(tables.get("guests", ()))
    )
    probes = tuple(_probe(value, f"probe[{index}]") for index, value in enumerate(tables.get("probe", ())))
    names = [probe.name for probe in probes]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise Invalid(f'probe[{index}]: name: "{name}" is the name of another')
    return Scenario(
        **{"about": "", **head},
        fleet=fleet,
        steps=tuple(sorted(steps, key=lambda step: step.at)),
        expect=_expectation(tables.get("expect", {}), fleet, steps),
        guests=guests,
        probes=probes,
    )


def with_speed(scenario: Scenario, speed: float | None) -> Scenario:
    """Set the speed of the clock; 1 is real time, and None keeps that of the scenario."""
    if speed is None:
        return scenario
    return replace(scenario, clock=_clock("system" if speed == 1 else f"x{speed:g}"))


def with_command(scenario: Scenario, command: Sequence[str]) -> Scenario:
    """Run a command as the guest of each machine with an expectation."""
    guests = tuple(GuestCommand(machine=name, command=tuple(command)) for name in scenario.expect.machines)
    return replace(scenario, guests=guests)


# Readers of single fields


def _duration(value: object) -> timedelta:
    try:
        given = parse_span(value)
    except ValueError as error:
        raise Invalid(f"{error}, got {shown(value)}") from None
    if given < timedelta():
        raise Invalid(f"expected a time that is not negative, got {shown(value)}")
    return given


def _clock(value: object) -> str:
    kind = fields.text(value)
    if kind == "manual":
        raise Invalid("expected system or xN, got manual")
    clock_of(kind)
    return kind


def _true(value: object) -> bool:
    if value is not True:
        raise Invalid(f"expected true, got {shown(value)}")
    return True


def _names(value: object) -> tuple[str, ...]:
    return tuple(fields.name(each) for each in fields.sequence(value))


def _command(value: object) -> tuple[str, ...]:
    words = fields.sequence(value)
    if not words or not all(isinstance(word, str) for word in words):
        raise Invalid('expected a list of words, such as ["./my-agent", "{endpoint}"]')
    return tuple(str(word) for word in words)


def _url(value: object) -> str:
    text = fields.text(value)
    if not text.lower().startswith(("http://", "https://")):
        raise Invalid(f"expected a URL, such as http://127.0.0.1:8000/health, got {shown(value)}")
    return text


def _some_time(value: object) -> timedelta:
    if not (given := _duration(value)):
        raise Invalid(f"expected a positive time, got {shown(value)}")
    return given


_SCENARIO_FILE: Readers = {
    "scenario": fields.table,
    "fleet": fields.table,
    "steps": fields.sequence,
    "guests": fields.sequence,
    "probe": fields.sequence,
    "expect": fields.table,
}

_HEAD: Readers = {
    "name": fields.name,
    "about": fields.text,
    "clock": _clock,
    "start": fields.choice(tuple(Start)),
    "limit": _duration,
    "recovery": _duration,
}

_STEP: Readers = {"at": _duration, "order": fields.table, "cancel": _true, "fault": fields.table}


_ORDER: Readers = {
    "machine": fields.name,
    "host": fields.name,
    "action": fields.choice(tuple(Action)),
    "work": fields.choice(MAINTENANCE_WORK),
}

_FAULT: Readers = {
    "kind": fields.choice(tuple(FaultKind)),
    "machines": _names,
    "for": _duration,
    "calls": fields.whole_number(1, 1_000_000),
    "delay": _duration,
    "notice": _duration,
}

_GUEST: Readers = {"machine": fields.name, "command": _command}

_PROBE: Readers = {
    "name": fields.name,
    "url": _url,
    "command": _command,
    "throughout": _true,
    "back_within": _duration,
    "every": _some_time,
    "timeout": _some_time,
}

_EXPECT: Readers = {
    "machines": _names,
    "polled": fields.flag,
    "saw": fields.flag,
    "approved": fields.flag,
    "within": _duration,
    "recovered": fields.flag,
}


# Tables


def _fleet(declared: Mapping[str, object]) -> FleetSpec:
    try:
        fleet = read_fleet(declared)
    except Invalid as refusal:
        raise Invalid(f"fleet: {refusal}") from None
    if not fleet.machines:
        raise Invalid("fleet: machines: expected at least one")
    return fleet


def _step(value: object, where: str, fleet: FleetSpec) -> ScenarioStep:
    given = fields.read(fields.table(value, where), _STEP, f"{where}: ")
    kinds = [kind for kind in ("order", "cancel", "fault") if kind in given]
    if len(kinds) != 1:
        raise Invalid(f"{where}: expected one of order, cancel or fault")
    at = given.get("at", timedelta())
    match kinds[0]:
        case "order":
            return ScenarioStep(at=at, does=_order(given["order"], f"{where}: order", fleet))
        case "fault":
            return ScenarioStep(at=at, does=_fault(given["fault"], f"{where}: fault", fleet))
        case _:
            return ScenarioStep(at=at, does=CancelStep())


def _order(table: Mapping[str, object], where: str, fleet: FleetSpec) -> OrderStep:
    given = fields.read(table, _ORDER, f"{where}.")
    if ("machine" in given) == ("host" in given):
        raise Invalid(f"{where}: expected either machine or host")
    known = ON_MACHINES if "machine" in given else ON_HOSTS
    if given.get("action") not in known:
        expected = either(sorted(known))
        raise Invalid(f"{where}.action: expected {expected}, got {shown(given.get('action'))}")
    if (given["action"] is Action.MAINTENANCE) != ("work" in given):
        raise Invalid(f"{where}.work: expected {either(MAINTENANCE_WORK)} with maintenance, and nothing else")
    if "host" in given and given["host"] not in {host.name for host in fleet.hosts}:
        raise Invalid(f'{where}.host: expected a host of the fleet, got "{given["host"]}"')
    if "machine" in given:
        _known(fleet, [given["machine"]], f"{where}.machine")
        if ACTIONS[given["action"]].spot_only:
            _check_spot(fleet, given["machine"], f"{where}.machine")
    return OrderStep(**given)


def _check_spot(fleet: FleetSpec, name: str, where: str) -> None:
    (machine,) = (each for each in fleet.machines if each.name == name)
    if machine.priority is not Priority.SPOT:
        raise Invalid(f'{where}: only machines with priority "spot" are evicted, and {name} is none')


def _fault(table: Mapping[str, object], where: str, fleet: FleetSpec) -> FaultStep:
    given = fields.read(table, _FAULT, f"{where}.")
    fields.require(given, {"kind": either(tuple(FaultKind))}, f"{where}.")
    _known(fleet, given.get("machines", ()), f"{where}.machines")
    lasts = given.pop("for", None)
    return FaultStep(fault=Fault(**given), lasts=lasts)


def _guest(value: object, where: str, fleet: FleetSpec) -> GuestCommand:
    given = fields.read(fields.table(value, where), _GUEST, f"{where}: ")
    fields.require(given, {"machine": "a name", "command": "a list of words"}, f"{where}: ")
    _known(fleet, [given["machine"]], f"{where}: machine")
    return GuestCommand(**given)


def _probe(value: object, where: str) -> Probe:
    given = fields.read(fields.table(value, where), _PROBE, f"{where}: ")
    fields.require(given, {"name": "a name"}, f"{where}: ")
    if ("url" in given) == ("command" in given):
        raise Invalid(f"{where}: expected either url or command")
    if given.pop("throughout", False) and "back_within" in given:
        raise Invalid(f"{where}: expected either throughout or back-within")
    return Probe(**given)


def _expectation(table: Mapping[str, object], fleet: FleetSpec, steps: Sequence[ScenarioStep]) -> Expectation:
    given = fields.read(table, _EXPECT, "expect.")
    if "within" in given and given.get("approved") is not True:
        raise Invalid("expect.within: expected approved = true beside it")
    _known(fleet, given.get("machines", ()), "expect.machines")
    return Expectation(**{"machines": _concerned(fleet, steps), **given})


def _concerned(fleet: FleetSpec, steps: Sequence[ScenarioStep]) -> tuple[str, ...]:
    """Return the machines in orders, and those on hosts in orders; all machines if there are none."""
    orders = [step.does for step in steps if isinstance(step.does, OrderStep)]
    machines, hosts = {order.machine for order in orders}, {order.host for order in orders}
    named = [each.name for each in fleet.machines if each.name in machines or each.host in hosts]
    return tuple(named or [each.name for each in fleet.machines])


def _known(fleet: FleetSpec, names: Sequence[str], where: str) -> None:
    known = {machine.name for machine in fleet.machines}
    for name in names:
        if name not in known:
            raise Invalid(f'{where}: expected a machine of the fleet, got "{name}"')


def all_shipped() -> tuple[Scenario, ...]:
    """Return all shipped scenarios, by name."""
    return tuple(_read(file.read_text(encoding="utf-8"), file.name) for file in _files())


def find(name: str) -> Scenario:
    """Read a scenario file, or a shipped scenario by name."""
    path = Path(name)
    if path.suffix == SUFFIX or path.is_file():
        return _read(_text(path), name)
    for file in _files():
        if file.name == name + SUFFIX:
            return _read(file.read_text(encoding="utf-8"), file.name)
    raise NotFound(f"scenario {name!r} does not exist: `forewarn rehearse --list` shows those that do")


def default_fleet() -> Mapping[str, object]:
    """Return the fleet for scenarios without one."""
    return tomllib.loads((_folder() / "fleet.toml").read_text(encoding="utf-8"))


def _folder() -> Traversable:
    return resources.files("forewarn.rehearsal")


def _files() -> list[Traversable]:
    folder = _folder() / "scenarios"
    return sorted(
        (file for file in folder.iterdir() if file.name.endswith(SUFFIX)), key=lambda file: file.name
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"scenario file {path} cannot be read: {error}") from None


def _read(text: str, where: str) -> Scenario:
    try:
        return read_scenario(text, default_fleet=default_fleet())
    except Invalid as refusal:
        raise Invalid(f"{where}: {refusal}") from None
