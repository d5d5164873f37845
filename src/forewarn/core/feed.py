"""The changes that a board follows."""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.core.basic_types import GroupName, MachineId
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """Everything that boards must apply after some number of the feed."""

    number: int  # of the newest change
    groups: tuple[Group, ...] = ()
    # All listed events of a group, oldest first. A group that is missing here keeps its events.
    events: Mapping[GroupName, tuple[Event, ...]]
    changed_events: tuple[Event, ...] = ()  # their new versions, listed or not
    machines: tuple[Machine, ...] = ()
    removed_groups: tuple[GroupName, ...] = ()
    removed_machines: tuple[MachineId, ...] = ()
    whole: bool = False  # a complete snapshot: a board drops everything that is not in it
