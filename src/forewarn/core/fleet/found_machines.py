"""Declarations of the machines that a source reports.

No two machines share a name or an address. A machine that keeps its present name or address comes first;
among the others, the first by id gets what is still free.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from forewarn.core.basic_types import GroupName, MachineId, MachineName, ProjectName
from forewarn.core.fleet.fleet_changes import Claim, claims
from forewarn.core.model.declaration import MachineSpec
from forewarn.core.model.found_fleet import FoundMachine
from forewarn.core.model.machine import Machine


def locate(
    found: Sequence[FoundMachine], known: Mapping[MachineId, Machine]
) -> tuple[list[FoundMachine], list[str]]:
    """Return each machine that is in one place, and notes about the others.

    A machine that is being migrated is neither a duplicate nor moved yet.
    """
    by_id: dict[MachineId, list[FoundMachine]] = defaultdict(list)
    for each in found:
        by_id[each.vm_id].append(each)
    present, notes = [], []
    for id_, sides in sorted(by_id.items()):
        called = f"machine {known[id_].name if id_ in known else sides[0].name}"
        running = [each for each in sides if each.running]
        if any(each.moving for each in sides):
            notes.append(f"{called} is being moved: left as it is")
        elif len(running) > 1:
            hosts = " and ".join(sorted(f"{each.host}" for each in running))
            notes.append(f"{called} ({id_}) runs on {hosts} at once: left as it is; stop one of them")
        elif (one := running[0] if running else _definition(sides, known.get(id_))) is not None:
            present.append(one)
    return present, notes


def _definition(sides: Sequence[FoundMachine], known: Machine | None) -> FoundMachine | None:
    """Choose among the hosts that define a stopped machine; None if several do and none is its known host."""
    here = [each for each in sides if known is None or each.host == known.host]
    if not here and len(sides) > 1:
        return None
    return min(here or sides, key=lambda each: each.host or "")


# The fields of a machine that an import may change; `--take` names them.
IMPORTABLE_FIELDS = (
    *("name", "group", "update_domain", "project"),
    *("network", "address", "mac", "mobility", "tags", "resources"),
)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_NO_NAMES = ("", ".", "..")
_LONGEST_NAME = 64
_OF_ID = 8  # the digits of the id that tell machines of the same name apart


def to_valid_name(name: str) -> str:
    """Return a valid name for a thing that a source names."""
    fitted = _NOT_IN_NAMES.sub("-", name).strip("-")[:_LONGEST_NAME]
    return fitted if fitted not in _NO_NAMES else "unnamed"


def is_unsafe_name(name: str) -> bool:
    """Whether paths or commands would misread a name."""
    return name in _NO_NAMES or name.startswith("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A reported machine, and its present declaration if it is known."""

    found: FoundMachine
    present: MachineSpec | None
    keeps: Collection[str] = ()  # the fields that the import must not change

    @property
    def place_in_group(self) -> tuple[GroupName | None, int]:
        """Its new group and update domain."""
        present, found = self.present, self.found
        group, domain = (None, 0) if present is None else (present.group, present.update_domain)
        if found.group is not None and found.group != group and "group" not in self.keeps:
            group, domain = found.group, 0 if "update_domain" not in self.keeps else domain
        if found.update_domain is not None and "update_domain" not in self.keeps:
            domain = found.update_domain
        return group, domain


class SpecBuilder:
    """Makes declarations of reported machines."""

    def __init__(self, others: Sequence[MachineSpec], projects: Callable[[GroupName], ProjectName]) -> None:
        """Take the machines that were not reported, and a function for the project of a group."""
        self.notes: list[str] = []
        self._project_of = projects
        self._owners: dict[Claim, str] = {
            claim: each.name for each in others for claim in claims(each) if claim[0] != "vm-id"
        }

    def specs(self, candidates: Sequence[Candidate], *, source: str) -> Mapping[MachineId, MachineSpec]:
        """Return the declaration of each machine."""
        plain = {each.found.vm_id: self._plain(each, source) for each in candidates}
        return self._settled(plain, {each.found.vm_id: each for each in candidates})

    def disputed(self, each: Candidate, *, source: str) -> Iterator[tuple[str, object]]:
        """Yield the fields that differ from the source but stay, with the value of the source."""
        free = replace(each, keeps=())
        wanted = self._plain(free, source)
        if not _keeps(free, naming=True):
            wanted = replace(wanted, name=MachineName(to_valid_name(each.found.name)))
        if not _keeps(free, naming=False):
            wanted = replace(wanted, address=each.found.addresses[0])
        for name, value in changed_fields(each.present or wanted, wanted):
            # The project of a group applies to its machines.
            if name in each.keeps and (name != "project" or wanted.group is None):
                yield name, value

    def _plain(self, each: Candidate, source: str) -> MachineSpec:
        """Return the declaration without the name and the address, which must be unique."""
        found, present = each.found, each.present
        base = present or MachineSpec(
            name=MachineName(to_valid_name(found.name)), host=found.host, vm_id=found.vm_id, source=source
        )
        group, domain = each.place_in_group
        said: dict[str, Any] = {
            "network": found.network,
            "mobility": found.mobility,
            "tags": found.tags,
            "resources": None if found.resources is None else {**base.resources, **found.resources},
            "mac": base.mac if base.mac in found.macs else next(iter(found.macs), None),
            "project": found.project,
        }
        taken = {key: value for key, value in said.items() if value is not None and key not in each.keeps}
        spec = replace(base, group=group, update_domain=domain, **taken)
        return spec if group is None else replace(spec, project=self._project_of(group))

    def _settled(
        self, plain: Mapping[MachineId, MachineSpec], candidates: Mapping[MachineId, Candidate]
    ) -> Mapping[MachineId, MachineSpec]:
        """Assign names and addresses, first to machines that keep theirs."""
        specs = dict(plain)
        for settle in (self._name, self._address):
            naming = settle == self._name
            for keeping in (True, False):
                for id_, each in sorted(candidates.items()):
                    # In another project, its name may be taken.
                    stays = not naming or each.present is None or each.present.project == specs[id_].project
                    if (stays and _keeps(each, naming=naming)) is keeping:
                        specs[id_] = settle(specs[id_], each)
        return specs

    def _name(self, spec: MachineSpec, each: Candidate) -> MachineSpec:
        name = spec.name if _keeps(each, naming=True) else MachineName(to_valid_name(each.found.name))
        if ("name", (spec.project, name.casefold())) in self._owners:
            name = _with_id(name, each.found.vm_id)
        self._owners["name", (spec.project, name.casefold())] = name
        return replace(spec, name=name)

    def _address(self, spec: MachineSpec, each: Candidate) -> MachineSpec:
        own, present = each.found.own_network, each.present
        options: list[str | None] = [*each.found.addresses]
        if not options or "address" in each.keeps:
            options = [spec.address]
        networks = [spec.network] if own is None or "network" in each.keeps else [spec.network, own]
        if present is not None and _keeps(each, naming=False):
            # Its present address comes first: on another network it may belong to another machine.
            options.sort(key=lambda address: address != present.address)
            networks.sort(key=lambda network: network != present.network)
        for network, address in product(networks, options):
            claim = ("address", (network, address))
            if address is None or claim not in self._owners:
                self._owners[claim] = spec.name
                return replace(spec, network=network, address=address)
        taken = ", ".join(f"{each}" for each in options)
        owner = self._owners["address", (spec.network, options[0])]
        self.notes.append(f"machine {spec.name}: address {taken} is not imported: {owner} has it")
        return replace(spec, address=None)


def _keeps(each: Candidate, *, naming: bool) -> bool:
    """Whether a machine keeps its name or its address."""
    if each.present is None:
        return not naming and not each.found.addresses
    if naming:
        name = MachineName(to_valid_name(each.found.name))
        own = (name, _with_id(name, each.found.vm_id))
        return "name" in each.keeps or each.present.name in own
    unsaid = not each.found.addresses or each.present.address in each.found.addresses
    return unsaid or "address" in each.keeps


def _with_id(name: MachineName, id_: MachineId) -> MachineName:
    return MachineName(f"{name[: _LONGEST_NAME - _OF_ID - 1]}-{id_[:_OF_ID]}")


def changed_fields(present: MachineSpec, wanted: MachineSpec) -> Iterator[tuple[str, object]]:
    """Yield the fields that an import would change, with their new values."""
    for each in fields(MachineSpec):
        if each.name in IMPORTABLE_FIELDS and getattr(present, each.name) != getattr(wanted, each.name):
            yield each.name, getattr(wanted, each.name)
