"""Where the machines are that a source has found: each is in one place, or is left as it is."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forewarn.core.model.found_fleet import FoundMachine
from forewarn.core.model.machine import Machine
from forewarn.core.words import MachineId


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Machines that are in one place, and what is said of the others."""

    present: tuple[FoundMachine, ...]
    notes: tuple[str, ...]


def places(found: Sequence[FoundMachine], known: Mapping[MachineId, Machine]) -> Places:
    """Find each machine once; one that is being moved is neither a duplicate nor somewhere else yet."""
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
    return Places(present=tuple(present), notes=tuple(notes))


def _definition(sides: Sequence[FoundMachine], known: Machine | None) -> FoundMachine | None:
    """Choose between hosts that know of a machine and do not run it.

    One that was off before is left as it is if several do: which of them speaks for it cannot be told.
    """
    here = [each for each in sides if known is None or each.host == known.host]
    if not here and len(sides) > 1:
        return None
    return min(here or sides, key=lambda each: each.host or "")
