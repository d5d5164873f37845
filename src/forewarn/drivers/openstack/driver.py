"""The port: which attempts may be carried out, and what it means that a cloud does not answer, or refuses."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    DriverLimits,
    DriverTask,
    Failed,
    NotBegun,
    TooLate,
    Unknown,
)
from forewarn.core.model.host import Host
from forewarn.core.model.inventory import Found
from forewarn.core.model.machine import Machine
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.openstack import host_tasks, inventory
from forewarn.drivers.openstack.compute_api import ComputeApi, NoAnswerError, RefusedError, check_installed
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.server_steps import ServerSteps

# Of so many steps it is remembered which attempt was the latest, and of so many that they were called off.
REMEMBERED = 10_000
DOWN = "its compute service is down, as nova says"


def make(setup: DriverSetup) -> "OpenStackDriver":
    """Make the driver as it is set; the cloud is first asked when there is something to do."""
    options = setup.read(OpenStackOptions())
    check_installed()
    return OpenStackDriver(options, ComputeApi(options))


class OpenStackDriver:
    """Has nova do the work of steps."""

    cordons = True
    chooses_hosts = True
    lists_by_host = False

    def __init__(self, options: OpenStackOptions, api: ComputeApi) -> None:
        self.limits: DriverLimits = options.limits
        self.fences = options.fences
        self._api = api
        self._servers = ServerSteps(options, api)
        self._lock = threading.Lock()
        self._latest: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._called_off: OrderedDict[tuple[str, str, int], None] = OrderedDict()

    # Steps

    def begin(self, task: DriverTask) -> Begun:
        """Have nova begin a step; what it refuses has failed, what it does not answer is not known."""
        if (refused := self._refused(task)) is not None:
            return refused
        try:
            begun = (
                self._servers.begin(task) if task.machine is not None else host_tasks.begin(self._api, task)
            )
        except NoAnswerError as error:
            return Unknown(f"{error}")
        except RefusedError as error:
            return Failed(f"nova refuses: {error}")
        return Unknown("nova has not begun") if isinstance(begun, NotBegun) else begun

    def check(self, task: DriverTask) -> Checked:
        """Look what has become of a step, and go on with it."""
        if (refused := self._refused(task)) is not None:
            return refused
        try:
            if task.machine is None:
                return host_tasks.check(self._api, task)
            return self._servers.check(task)
        except (NoAnswerError, RefusedError) as error:
            return Unknown(f"{error}")

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call a step off; what is done to a host is done at once, and not called back."""
        if task.machine is None:
            return TooLate()
        try:
            answer = self._servers.cancel(task)
        except (NoAnswerError, RefusedError) as error:
            return Unknown(f"{error}")
        if isinstance(answer, Cancelled):
            self._note_called_off(task)
        return answer

    def _refused(self, task: DriverTask) -> Failed | None:
        """Refuse an attempt that is older than one that was seen, or that was called off."""
        step = (task.order, task.subject)
        with self._lock:
            latest = self._latest.get(step, 0)
            if task.attempt < latest:
                return Failed(f"attempt {latest} has been begun since")
            self._latest[step] = task.attempt
            self._latest.move_to_end(step)
            while len(self._latest) > REMEMBERED:
                self._latest.popitem(last=False)
            return Failed("it was called off") if (*step, task.attempt) in self._called_off else None

    def _note_called_off(self, task: DriverTask) -> None:
        with self._lock:
            self._called_off[(task.order, task.subject, task.attempt)] = None
            while len(self._called_off) > REMEMBERED:
                self._called_off.popitem(last=False)

    # Hosts

    def precheck(self, machine: Machine, target: Host) -> str | None:
        """Return why a machine could not go to a host that it is told to go to, if nova says so."""
        try:
            service = next(iter(self._api.services(target.name)), None)
        except (NoAnswerError, RefusedError):
            return None  # `begin` says what is wrong
        if service is None:
            return _unknown_host(target)
        if not service.enabled:
            return f"nova has its compute service disabled: {service.reason or 'without a reason'}"
        return None if service.up else DOWN

    def reach(self, host: Host) -> str | None:
        """Return why a host cannot be worked on now: nova's word for its compute service."""
        try:
            service = next(iter(self._api.services(host.name)), None)
        except (NoAnswerError, RefusedError) as error:
            return f"{error}"
        if service is None:
            return _unknown_host(host)
        return None if service.up else DOWN

    def inventory(self, hosts: Sequence[Host]) -> Found:
        """Return the servers, hosts and server groups of the cloud."""
        return inventory.found(self._api)


def _unknown_host(host: Host) -> str:
    return f"nova has no compute service on {host.name}: hosts have to be called as nova calls them"
