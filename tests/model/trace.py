"""The printed runs of the model as values: actions and states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

# The numbers are from fleet.pml and forewarn.pml.


class Act(IntEnum):
    """The actions of the model."""

    ORDER = 1
    CANCEL = 2
    APPROVE = 3
    DEFER = 4
    HOLD = 5
    RELEASE = 6
    RESTORE = 7
    DONE = 8
    WORKED = 9
    LOOK = 10
    TICK = 11
    CRASH = 12
    RECOVER = 13
    WAIT = 14


class Ordered(IntEnum):
    """The orders on hosts."""

    NONE = 0
    MAINTENANCE = 1
    DEGRADE = 2
    FAIL = 3
    SERVICE = 4


class Share(IntEnum):
    """The state of a machine in an order."""

    FREE = 0
    QUEUED = 1
    SCHEDULED = 2
    STARTED = 3


class HostIs(IntEnum):
    """The states of hosts."""

    OK = 0
    DEGRADED = 1
    FAILED = 2
    CORDONED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """A machine, and its event if it has one."""

    host: int
    share: Share
    armed: bool = False
    approved: bool = False
    deferred: bool = False
    not_before: int = 0  # in ticks from now


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """A host, and its order if it has one."""

    order: Ordered
    state: HostIs
    working: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The whole fleet."""

    machines: tuple[MachineState, ...]
    hosts: tuple[HostState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action in the model, with the state after it."""

    act: Act
    about: int  # the machine or the host; for WAIT the number of ticks
    more: int  # the kind of order, the target of a move, or the host that the engine looks at first
    refused: bool
    down: bool
    after: State

    @property
    def ticks(self) -> int:
        """The ticks that passed."""
        return self.about if self.act is Act.WAIT else int(self.act is Act.TICK)

    def __str__(self) -> str:
        match self.act:
            case Act.ORDER:
                said = f"order {Ordered(self.more).name.lower()} of host {self.about}"
            case Act.APPROVE | Act.DEFER:
                said = f"{self.act.name.lower()} {name(self.about)}"
            case Act.DONE:
                said = f"{name(self.about)} is done, on host {self.more}"
            case Act.CANCEL | Act.RESTORE | Act.WORKED | Act.LOOK:
                said = f"{self.act.name.lower()} host {self.about}"
            case Act.WAIT:
                said = f"{self.about} ticks"
            case _:
                said = self.act.name.lower()
        return f"{said} (refused)" if self.refused else said


def name(machine: int) -> str:
    """Return the name of a machine: A0 to A2, B0 to B2, by its update domain."""
    return f"{'AB'[machine // 3]}{machine % 3}"


# Situations that runs must reach to prove anything.
SITUATIONS = (
    "refused",
    "announced",
    "armed later",
    "moved",
    "withdrawn",
    "started",
    "started early",
    "moved elsewhere",
    "hosts worked on",
)


def situations(before: Action, action: Action, *, stale: int) -> Iterator[str]:
    """Return the situations of an action; events become stale `stale` ticks after NotBefore."""
    if action.refused:
        yield "refused"
    for was, now in zip(before.after.machines, action.after.machines, strict=True):
        yield from _situations_of(was, now, action, stale)
    for host, later in zip(before.after.hosts, action.after.hosts, strict=True):
        if later.working and not host.working:
            yield "hosts worked on"


def _situations_of(was: MachineState, now: MachineState, action: Action, stale: int) -> Iterator[str]:
    if was.host != now.host:
        yield "moved elsewhere"
    match was.share, now.share:
        case ((Share.FREE | Share.QUEUED), Share.SCHEDULED):
            yield "announced"
        case Share.SCHEDULED, (Share.QUEUED | Share.SCHEDULED) if _is_stale(was, action, stale):
            yield "withdrawn"
        case Share.SCHEDULED, Share.STARTED:
            yield "started early" if was.not_before > action.ticks else "started"
        case Share.SCHEDULED, Share.SCHEDULED:
            if now.armed and not was.armed:
                yield "armed later"
            if now.not_before > was.not_before - action.ticks and action.act is not Act.DEFER:
                yield "moved"


def _is_stale(was: MachineState, action: Action, stale: int) -> bool:
    return not action.down and was.not_before - action.ticks <= -stale


def read(line: str) -> Action:
    """Parse a printed action."""
    act, about, more, refused, _held, down, *parts = line.split()
    return Action(
        act=Act(int(act)),
        about=int(about),
        more=int(more),
        refused=refused == "1",
        down=down == "1",
        after=State(machines=tuple(map(_machine, parts[:6])), hosts=tuple(map(_host, parts[6:]))),
    )


def _machine(part: str) -> MachineState:
    host, share, armed, approved, deferred, not_before = _numbers(part)
    if share != Share.SCHEDULED:  # these fields are compared for scheduled events only
        return MachineState(host=host, share=Share(share))
    return MachineState(
        host=host,
        share=Share(share),
        armed=bool(armed),
        approved=bool(approved),
        deferred=bool(deferred),
        not_before=not_before,
    )


def _host(part: str) -> HostState:
    order, state, working = _numbers(part)
    return HostState(order=Ordered(order), state=HostIs(state), working=bool(working))


def _numbers(part: str) -> Sequence[int]:
    return [int(number) for number in part.split("/")]
