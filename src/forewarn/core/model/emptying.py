"""Whether hosts can be emptied before they are worked on, and what stands in the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from forewarn.core.model.host import Room
from forewarn.core.words import HostName, MachineName, Mobility, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaver:
    """A machine that is to leave its host, as far as that decides whether it can."""

    name: MachineName
    host: HostName
    project: ProjectName
    mobility: Mobility = Mobility.COLD
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    ordered: str = ""  # the open order on it, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Machines that are to leave their hosts, and the room there is for them on all sound hosts."""

    machines: Sequence[Leaver] = ()
    rooms: Mapping[HostName, Room] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A machine that keeps its host from being emptied, and why."""

    machine: MachineName
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptying:
    """Whether one host can be emptied."""

    host: HostName
    machines: int  # that it carries
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.obstacles
