"""The driver port: what a driver is given, what it is asked, and what it may answer.

A step is *begun* once for each attempt, after the attempt was saved. Order, machine (or the task on a host)
and attempt name it for good, and the attempt is the fencing token: once a driver has been asked about an
attempt, it refuses an older one of the same order and machine, however late that call arrives. What cannot be
known, because a hypervisor does not answer, is `Unknown` and never `Failed`: a failure waits for a person,
who may have it done again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from forewarn.core.basic_types import Action, HostName, HostTask, OrderId, Work
from forewarn.core.errors import Invalid
from forewarn.core.model.found_fleet import FoundFleet
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId
from forewarn.core.redaction import driver_named
from forewarn.core.text_formats import hint
from forewarn.wire.texts import either, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverTask:
    """A step of a machine, or of a host itself, as its driver is given it.

    `now`, and the moments of the answers, are service time for drivers that answer at once and real time for
    all others.
    """

    order: OrderId
    attempt: int  # the fencing token
    action: Action
    work: Work
    task: HostTask | None = None  # what is done to the host itself; then there is no machine
    machine: Machine | None
    # The host that carries the machine, or that is worked on, with its connection; None: it is on none.
    source: Host | None
    target: Host | None  # where the machine is to be afterwards; None: it stays, or the driver chooses
    moves: bool = False  # whether it is to be on another host afterwards
    begun_at: datetime  # service time, as `deadline` is
    now: datetime
    deadline: datetime | None = None  # when the step should be over, as guests were told
    mark: str = ""  # what the driver left to recognise the attempt by
    driver: str
    # The machine was to restart with its host, which has been worked on: verify that it runs, and start it if
    # it does not. `work` is `start` then.
    verifies: bool = False
    heartbeat: timedelta | None = None  # the longest time between two reports, if the order says so
    taken_up_at: datetime | None = None  # when somebody outside first said that they are at it

    @property
    def id(self) -> AttemptId:
        """What names the attempt."""
        return AttemptId(self.order, self.subject, self.attempt)

    @property
    def subject(self) -> str:
        """Whose step it is, as attempts name it."""
        return self.machine.id if self.machine is not None else f"host/{self.task}"

    @property
    def name(self) -> str:
        """Whose step it is, as people say."""
        if self.machine is not None:
            return self.machine.name
        host = self.source.name if self.source is not None else "a host"
        return host if self.task is None else f"{self.task} of {host}"

    @property
    def host(self) -> Host | None:
        """The host that the driver has to do with first."""
        return self.target if self.source is None else self.source


@dataclass(frozen=True, slots=True)
class Done:
    """The step has been carried out."""

    host: HostName | None = None  # where the machine is now; None: where it was to be
    impact: float | None = None  # the seconds that it was really away, if that is known
    note: str = ""  # what is to be known of it besides, as that a hook after it has failed


@dataclass(frozen=True, slots=True)
class Running:
    """The step is under way."""

    look_at: datetime | None  # when to ask again; None: not before there was a report
    mark: str = ""  # what the driver recognises the attempt by; kept, and given to it with the next task
    progress: float | None = None  # how much of it is done, from 0 to 1, if that is known


@dataclass(frozen=True, slots=True)
class Failed:
    """The step was not carried out, and nothing more comes of it."""

    why: str
    again: bool = False  # whether a step of a host is tried again by itself, as another attempt


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The driver has never begun this attempt: a crash came first."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """What has become of the step cannot be told now: it is not begun anew, but asked about again."""

    why: str
    look_at: datetime | None = None  # when to ask again; None: as soon as is usual
    host: HostName | None = None  # the host that cannot be reached, if that is why


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The step is called off: the driver does no more of this attempt, also if its `begin` comes later."""


@dataclass(frozen=True, slots=True)
class TooLate:
    """The step cannot be called off any more, and goes on."""


Begun: TypeAlias = Done | Running | Failed | Unknown
Checked: TypeAlias = Done | Running | Failed | NotBegun | Unknown
CancelAnswer: TypeAlias = Cancelled | TooLate | Unknown


# With the time that an answer may take, a host that has fallen silent is known within ten seconds.
REACH_EVERY = timedelta(seconds=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLimits:
    """How a driver that takes its time is called: in lanes, one for each host."""

    timeout: timedelta  # of real time; a call that takes longer is given up
    at_once: int  # how many calls may run in a host's lane, unless the host says otherwise
    reach_every: timedelta = REACH_EVERY  # how often it is asked whether it reaches a host, if it can tell


class Driver(Protocol):
    """Carries steps out. Called outside any transaction; what it raises is taken as `Unknown`."""

    @property
    def limits(self) -> DriverLimits | None:
        """How it is called in lanes; None: it answers at once, and is called where the engine runs."""
        ...

    def begin(self, task: DriverTask) -> Begun:
        """Start a step. Its attempt has been saved, and this is called once for it."""
        ...

    def check(self, task: DriverTask) -> Checked:
        """Return how a step is doing, also one that was begun before a crash, or perhaps never."""
        ...

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call a step off, if that can still be done."""
        ...


@runtime_checkable
class Fencing(Protocol):
    """A driver that can keep a failed host from touching its machines: by its power, its network, its disks.

    It is begun, checked and called off like any other step, with `task` being `fence`.
    """

    @property
    def fences(self) -> bool:
        """Whether it does so, as it is set."""
        ...


@runtime_checkable
class Cordoning(Protocol):
    """A driver that can keep its hypervisor from sending machines to a host that is worked on.

    Where no hook does it, `cordon` and `uncordon` are steps of the host's driver, begun and checked like
    others. What somebody else has closed, it leaves closed.
    """

    @property
    def cordons(self) -> bool:
        """Whether it does so, as it is set."""
        ...


@runtime_checkable
class ChoosingHosts(Protocol):
    """A driver whose hypervisor knows best where machines can go: forewarn chooses no host for them.

    `task.target` is then None, unless a machine has to go to one host, as when it comes back; `Done` names
    the host.
    """

    @property
    def chooses_hosts(self) -> bool:
        """Whether it does so, as it is set."""
        ...


@runtime_checkable
class TakingLeave(Protocol):
    """A driver that takes its time, and wants to know which attempts run no more."""

    def ended(self, task: DriverTask) -> None:
        """Take note that an attempt has ended, by its own answer or otherwise. Never waits."""
        ...


@runtime_checkable
class InOwnWords(Protocol):
    """A driver of forewarn's whose reasons are forewarn's own, which tenants may read."""

    trusted_text: ClassVar[bool]


@runtime_checkable
class LoadingNativeCode(Protocol):
    """A driver whose library may crash its process: its calls are made in a process of its own.

    The driver is made in the server too, which reads what it offers and never calls it. So it loads the
    library when it is first called, and not when it is made.
    """

    isolated: ClassVar[bool]


@runtime_checkable
class WorkingOnHosts(Protocol):
    """A driver that can do the work on a host itself; its tasks have no machine, and `task` is `work`."""

    @property
    def works_on_hosts(self) -> bool:
        """Whether it does so, as it is set."""
        ...


@runtime_checkable
class VerifyingRestarts(Protocol):
    """A driver that verifies, after work on a host, that each machine that stayed on it runs.

    It is begun, checked and called off like any other step; `task.verifies` is set and `task.work` is
    `start`. It starts a machine that is off, and answers Failed if it cannot.
    """

    @property
    def verifies_restarts(self) -> bool:
        """Whether it does so, as it is set."""
        ...


@runtime_checkable
class Prechecking(Protocol):
    """A driver that can tell beforehand whether a machine can move.

    forewarn asks before it announces a move, and again before `begin`.
    """

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        """Return why a step could not be done; None if it could; Unknown if that cannot be told now.

        `Unknown.host` names a host that cannot be reached. Nothing is begun, and nothing is changed. The step
        may never come.
        """
        ...


@runtime_checkable
class Reaching(Protocol):
    """A driver that can tell whether it reaches a host; asked every `limits.reach_every`.

    The call waits for no other, and is given up after five seconds: then the host counts as out of reach.
    """

    def reach(self, host: Host) -> str | None:
        """Return why a host cannot be reached now; None if it can."""
        ...


@runtime_checkable
class Listing(Protocol):
    """A driver that can tell what there is: machines, hosts and groups, for `forewarn fleet import`."""

    @property
    def lists_by_host(self) -> bool:
        """Whether each host is asked by itself, within the driver's time-out, so that none holds up others.

        Else one call is made, with all hosts that are known, and the driver finds what there is.
        """
        ...

    def inventory(self, hosts: Sequence[Host]) -> FoundFleet:
        """Return what these hosts have; one that cannot be asked is named in `unreachable`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDrivers:
    """The drivers there were when the server started."""

    names: frozenset[str] = frozenset()  # that hosts and orders may be given
    kinds: Mapping[str, str] = field(default_factory=dict)  # also of those that cannot be used
    unusable: Mapping[str, str] = field(default_factory=dict)  # why, by name
    listing: frozenset[str] = frozenset()  # that can tell what there is

    def unusable_because(self, driver: str) -> str | None:
        """Say why a driver cannot be used; None: it can."""
        if driver in self.names:
            return None
        why = self.unusable.get(driver)
        named = driver_named(driver)
        return f"{named} cannot be used: {why}" if why else f"{named} is not installed"

    def check(self, driver: str | None, *, where: str = "driver") -> None:
        """Refuse a driver that is not there, or cannot be used, and say what there is or why not."""
        if driver is None or driver in self.names:
            return
        if driver in self.unusable:
            raise Invalid(f"{where}: {shown(driver)} cannot be used: {self.unusable[driver]}")
        how = hint(driver, self.names) or (
            f"; install the package that brings it, or set [drivers.{driver}], and start the server again"
        )
        raise Invalid(f"{where}: expected {either(sorted(self.names))}, got {shown(driver)}{how}")

    def check_listing(self, driver: str, *, where: str) -> None:
        """Refuse a driver that cannot tell what there is, and name those that can."""
        if driver in self.listing:
            return
        if driver in self.unusable:
            self.check(driver, where=where)
        if not self.listing:
            missing = "install forewarn[libvirt] or forewarn[openstack], or declare it (forewarn fleet apply)"
            raise Invalid(f"{where}: no driver here can list what there is: {missing}")
        names = sorted(self.listing)
        expected = f"{where}: expected {either(names)}"
        if driver in self.names:
            raise Invalid(f"{expected}: driver {shown(driver)} cannot list what there is")
        raise Invalid(f"{expected}, got {shown(driver)}{hint(driver, names)}")
