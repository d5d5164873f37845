"""The driver interface: tasks, answers and capabilities.

forewarn calls `begin` once per attempt, after it has saved the attempt. Order, subject (a machine or a task
on a host) and attempt number identify an attempt. The attempt number is the fencing token: after a call for
one attempt, a driver refuses calls for older attempts of the same order and subject.

A driver that cannot determine the outcome, for example because the hypervisor does not answer, returns
`Unknown`, never `Failed`. A failed step waits for a person, who may retry it.
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
    """One step of a machine or of a host, as the driver gets it.

    `now` and the times in answers are service time for drivers without `limits`, and real time for all
    others.
    """

    order: OrderId
    attempt: int  # the fencing token
    action: Action
    work: Work
    task: HostTask | None = None  # the task on the host itself; there is no machine then
    machine: Machine | None
    # The host that carries the machine, or that the work is on. None: the machine is on no host.
    source: Host | None
    target: Host | None  # the host the machine must end up on; None: it stays, or the driver chooses
    moves: bool = False  # whether the machine must end up on another host
    begun_at: datetime  # service time, as is `deadline`
    now: datetime
    deadline: datetime | None = None  # when the step should end, according to the event
    mark: str = ""  # the driver's own mark of the attempt, from an earlier answer
    driver: str
    # The machine was to restart together with its host, whose work is done. The driver verifies that the
    # machine runs, and starts it if it does not; `work` is `start`.
    verifies: bool = False
    heartbeat: timedelta | None = None  # the longest time between two reports, if the order sets one
    taken_up_at: datetime | None = None  # when an external program first reported that it works on the step

    @property
    def id(self) -> AttemptId:
        """The attempt."""
        return AttemptId(self.order, self.subject, self.attempt)

    @property
    def subject(self) -> str:
        """The subject in the attempt's id: a machine id, or `host/TASK`."""
        return self.machine.id if self.machine is not None else f"host/{self.task}"

    @property
    def name(self) -> str:
        """The subject in messages."""
        if self.machine is not None:
            return self.machine.name
        host = self.source.name if self.source is not None else "a host"
        return host if self.task is None else f"{self.task} of {host}"

    @property
    def host(self) -> Host | None:
        """The host that the driver contacts first."""
        return self.target if self.source is None else self.source


@dataclass(frozen=True, slots=True)
class Done:
    """The step is done."""

    host: HostName | None = None  # where the machine is now; None: on the target
    impact: float | None = None  # the seconds that the machine was really away, if known
    note: str = ""  # a remark for the operator, for example that a hook failed afterwards


@dataclass(frozen=True, slots=True)
class Running:
    """The step is in progress."""

    look_at: datetime | None  # when to call `check` again; None: only after a report
    mark: str = ""  # the driver's own mark of the attempt; saved, and passed with the next task
    progress: float | None = None  # from 0 to 1, if known


@dataclass(frozen=True, slots=True)
class Failed:
    """The step was not carried out, and the attempt is over."""

    why: str
    again: bool = False  # whether forewarn retries a step of a host automatically, with a new attempt


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The driver has not begun this attempt, because of a crash before `begin`."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The driver cannot determine the state of the step now. forewarn calls `check` again, not `begin`."""

    why: str
    look_at: datetime | None = None  # when to call again; None: after the default interval
    host: HostName | None = None  # the unreachable host, if that is the reason


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The step is cancelled. The driver does nothing more for this attempt, even if `begin` arrives later."""


@dataclass(frozen=True, slots=True)
class TooLate:
    """The step can no longer be cancelled, and continues."""


Begun: TypeAlias = Done | Running | Failed | Unknown
Checked: TypeAlias = Done | Running | Failed | NotBegun | Unknown
CancelAnswer: TypeAlias = Cancelled | TooLate | Unknown


# Together with the timeout of a call, forewarn detects an unreachable host within ten seconds.
REACH_EVERY = timedelta(seconds=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLimits:
    """Limits for the calls of a slow driver, which run in one lane per host."""

    timeout: timedelta  # of one call, in real time
    at_once: int  # how many calls run in a host's lane at once, unless the host sets its own limit
    reach_every: timedelta = REACH_EVERY  # the interval between two `reach` calls for a host


class Driver(Protocol):
    """Carries out steps. forewarn calls it outside any transaction and treats an exception as `Unknown`."""

    @property
    def limits(self) -> DriverLimits | None:
        """Limits for calls in lanes.

        None: the driver answers immediately, and the engine calls it directly.
        """
        ...

    def begin(self, task: DriverTask) -> Begun:
        """Start a step. forewarn calls this once per attempt, after it has saved the attempt."""
        ...

    def check(self, task: DriverTask) -> Checked:
        """Return the state of a step, which may have begun before a crash, or never."""
        ...

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Cancel a step if that is still possible."""
        ...


@runtime_checkable
class Fencing(Protocol):
    """A driver that can isolate a failed host from its machines: by power, network or disks.

    Fencing is a step like any other, whose `task` is `fence`.
    """

    @property
    def fences(self) -> bool:
        """Whether fencing is enabled in the settings."""
        ...


@runtime_checkable
class Cordoning(Protocol):
    """A driver that can stop its hypervisor from scheduling machines on a host under maintenance.

    `cordon` and `uncordon` are steps of the host, unless a hook carries them out. `uncordon` does not reopen
    a host that was closed outside forewarn.
    """

    @property
    def cordons(self) -> bool:
        """Whether cordoning is enabled in the settings."""
        ...


@runtime_checkable
class ChoosingHosts(Protocol):
    """A driver whose hypervisor chooses the target host of a move.

    `task.target` is None, except for a machine that returns to a specific host. `Done` names the host.
    """

    @property
    def chooses_hosts(self) -> bool:
        """Whether the hypervisor chooses, according to the settings."""
        ...


@runtime_checkable
class AttemptEndListener(Protocol):
    """A driver with limits that forewarn notifies when an attempt has ended."""

    def ended(self, task: DriverTask) -> None:
        """Handle the end of an attempt, for whatever reason it ended. Must not block."""
        ...


@runtime_checkable
class TrustedText(Protocol):
    """A built-in driver whose messages forewarn itself writes, so that tenants may read them."""

    trusted_text: ClassVar[bool]


@runtime_checkable
class LoadingNativeCode(Protocol):
    """A driver whose native library may crash the process, so its calls run in a separate process.

    The server also instantiates the driver to read its capabilities, but never calls it. The driver must
    therefore load its library on the first call, not in its constructor.
    """

    isolated: ClassVar[bool]


@runtime_checkable
class WorkingOnHosts(Protocol):
    """A driver that can do the work on a host itself. Its tasks have no machine, and `task` is `work`."""

    @property
    def works_on_hosts(self) -> bool:
        """Whether work on hosts is enabled in the settings."""
        ...


@runtime_checkable
class VerifyingRestarts(Protocol):
    """A driver that verifies, after work on a host, that each machine that stayed on it runs.

    Verification is a step like any other, with `task.verifies` set and `task.work` equal to `start`. The
    driver starts a machine that is off, and returns Failed if it cannot.
    """

    @property
    def verifies_restarts(self) -> bool:
        """Whether verification is enabled in the settings."""
        ...


@runtime_checkable
class Prechecking(Protocol):
    """A driver that can tell in advance whether a machine can move.

    forewarn calls it before it announces a move, and again before `begin`.
    """

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        """Return why a step is impossible; None if it is possible; Unknown if the driver cannot tell.

        `Unknown.host` names an unreachable host. The call changes nothing, and the step may never follow.
        """
        ...


@runtime_checkable
class Reaching(Protocol):
    """A driver that can test the connection to a host. forewarn calls it every `limits.reach_every`.

    The call runs outside the host's lane. After five seconds the host counts as unreachable.
    """

    def reach(self, host: Host) -> str | None:
        """Return why a host is unreachable; None if it is reachable."""
        ...


@runtime_checkable
class Listing(Protocol):
    """A driver that can list machines, hosts and groups, for `forewarn fleet import`."""

    @property
    def lists_by_host(self) -> bool:
        """Whether forewarn calls `inventory` once per host, each with the driver's timeout.

        Otherwise it makes one call with all known hosts, and the driver finds the others.
        """
        ...

    def inventory(self, hosts: Sequence[Host]) -> FoundFleet:
        """Return the contents of these hosts. `unreachable` names those that do not answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDrivers:
    """The drivers that were available when the server started."""

    names: frozenset[str] = frozenset()  # of the usable drivers
    kinds: Mapping[str, str] = field(default_factory=dict)  # by name, for unusable drivers too
    unusable: Mapping[str, str] = field(default_factory=dict)  # the reason, by name
    listing: frozenset[str] = frozenset()  # the names of those that implement `Listing`

    def unusable_because(self, driver: str) -> str | None:
        """Return why a driver cannot be used; None if it can."""
        if driver in self.names:
            return None
        why = self.unusable.get(driver)
        named = driver_named(driver)
        return f"{named} cannot be used: {why}" if why else f"{named} is not installed"

    def check(self, driver: str | None, *, where: str = "driver") -> None:
        """Raise Invalid if a driver is missing or cannot be used."""
        if driver is None or driver in self.names:
            return
        if driver in self.unusable:
            raise Invalid(f"{where}: {shown(driver)} cannot be used: {self.unusable[driver]}")
        how = hint(driver, self.names) or (
            f"; install the package that brings it, or set [drivers.{driver}], and start the server again"
        )
        raise Invalid(f"{where}: expected {either(sorted(self.names))}, got {shown(driver)}{how}")

    def check_listing(self, driver: str, *, where: str) -> None:
        """Raise Invalid if a driver cannot list machines, and name those that can."""
        if driver in self.listing:
            return
        if driver in self.unusable:
            self.check(driver, where=where)
        if not self.listing:
            missing = "install forewarn[libvirt] or forewarn[openstack], or declare it (forewarn fleet apply)"
            raise Invalid(f"{where}: no installed driver can list machines: {missing}")
        names = sorted(self.listing)
        expected = f"{where}: expected {either(names)}"
        if driver in self.names:
            raise Invalid(f"{expected}: driver {shown(driver)} cannot list machines")
        raise Invalid(f"{expected}, got {shown(driver)}{hint(driver, names)}")
