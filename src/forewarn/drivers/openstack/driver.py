"""The port: which attempts may be carried out, and what it means that a cloud does not answer, or refuses."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Checked,
    DriverLimits,
    DriverTask,
    Failed,
    NotBegun,
    TooLate,
    Unknown,
)
from forewarn.core.model.found_fleet import FoundFleet
from forewarn.core.model.host import Host
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.openstack import host_tasks, inventory
from forewarn.drivers.openstack.attempts import Attempts
from forewarn.drivers.openstack.compute_api import ComputeApi, NoAnswerError, RefusedError, check_installed
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.server_steps import ServerSteps

# Nova itself takes a minute to see that a compute service is down.
REACH_EVERY = timedelta(seconds=30)
DOWN = "its compute service is down, as nova says"


def make(setup: DriverSetup) -> "OpenStackDriver":
    """Make the driver as it is set; the cloud is first asked when there is something to do."""
    options = setup.read(OpenStackOptions())
    check_installed()
    return OpenStackDriver(options, ComputeApi(options), Attempts(setup.monotonic))


class OpenStackDriver:
    """Has nova do the work of steps."""

    cordons = True
    chooses_hosts = True
    lists_by_host = False

    def __init__(self, options: OpenStackOptions, api: ComputeApi, attempts: Attempts) -> None:
        self.limits: DriverLimits = replace(options.limits, reach_every=REACH_EVERY)
        self.fences = options.fences
        self._api = api
        self._networks = options.addresses
        self._attempts = attempts
        self._servers = ServerSteps(options, api, attempts)

    # Steps

    def begin(self, task: DriverTask) -> Begun:
        """Begin a step; what nova refuses has failed, what it does not answer is not known."""
        if (refused := self._attempts.refusal(task)) is not None:
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
        if (refused := self._attempts.refusal(task)) is not None:
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
            return self._servers.cancel(task)
        except (NoAnswerError, RefusedError) as error:
            return Unknown(f"{error}")

    # Hosts

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        """Return why a machine could not go to a host that it is told to go to, if nova says so."""
        target = task.target
        if target is None:
            return None
        try:
            service = next(iter(self._api.services(target.name)), None)
        except NoAnswerError as error:
            return Unknown(f"{error}")
        except RefusedError:
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

    def inventory(self, hosts: Sequence[Host]) -> FoundFleet:
        """Return the servers, hosts and server groups of the cloud."""
        return inventory.found(self._api, self._networks)


def _unknown_host(host: Host) -> str:
    return f"nova has no compute service on {host.name}: hosts have to be called as nova calls them"
