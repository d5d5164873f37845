"""What boards follow."""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.core.basic_types import GroupName, MachineId
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """All that boards must know of what changed after some number of the feed."""

    number: int  # of the newest change in it
    groups: tuple[Group, ...] = ()
    # All listed events of a group, by creation; a group that is not here keeps those it has.
    events: Mapping[GroupName, tuple[Event, ...]]
    changed_events: tuple[Event, ...] = ()  # that take the place of what they were, listed or not
    machines: tuple[Machine, ...] = ()
    removed_groups: tuple[GroupName, ...] = ()
    removed_machines: tuple[MachineId, ...] = ()
    whole: bool = False  # it has all that there is: what is not in it is gone
