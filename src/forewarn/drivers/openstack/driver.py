"""The port: which attempts may be carried out, and what it means that a cloud does not answer, or refuses."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Checked,
    Done,
    DriverLimits,
    DriverTask,
    Failed,
    NotBegun,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import HostTask
from forewarn.core.model.found_fleet import FoundFleet
from forewarn.core.model.host import Host
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.openstack import inventory
from forewarn.drivers.openstack.attempts import ServerAttempts
from forewarn.drivers.openstack.compute_api import (
    ComputeApi,
    ComputeService,
    NoAnswerError,
    RefusedError,
    check_installed,
)
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.server_steps import ServerSteps

# Nova itself takes a minute to see that a compute service is down.
REACH_EVERY = timedelta(seconds=30)
DOWN = "its compute service is down, as nova says"


def make(setup: DriverSetup) -> "OpenStackDriver":
    """Make the driver as it is set; the cloud is first asked when there is something to do."""
    options = setup.read(OpenStackOptions())
    check_installed()
    return OpenStackDriver(options, ComputeApi(options), ServerAttempts(setup.monotonic))


class OpenStackDriver:
    """Has nova do the work of steps."""

    cordons = True
    chooses_hosts = True
    lists_by_host = False

    def __init__(self, options: OpenStackOptions, api: ComputeApi, attempts: ServerAttempts) -> None:
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
                self._servers.begin(task) if task.machine is not None else begin_host_task(self._api, task)
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
                return check_host_task(self._api, task)
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
            service = _service_of(self._api, target)
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
            service = _service_of(self._api, host)
        except (NoAnswerError, RefusedError) as error:
            return f"{error}"
        if service is None:
            return _unknown_host(host)
        return None if service.up else DOWN

    def inventory(self, hosts: Sequence[Host]) -> FoundFleet:
        """Return the servers, hosts and server groups of the cloud."""
        return inventory.found(self._api, self._networks)


def begin_host_task(api: ComputeApi, task: DriverTask) -> Checked:
    """Have the compute service of a host changed, and see that it was."""
    service = _service_of(api, task.source)
    if service is None:
        return Failed(_unknown_host(task.source))
    match task.task:
        case HostTask.CORDON if service.enabled:
            api.disable(service, reason_of(task))
        case HostTask.UNCORDON if not service.enabled and service.reason == reason_of(task):
            api.enable(service)
        case HostTask.FENCE if not service.forced_down:
            api.force_down(service)
    answer = check_host_task(api, task)
    return Unknown("nova was asked, and does not show it yet") if isinstance(answer, NotBegun) else answer


def check_host_task(api: ComputeApi, task: DriverTask) -> Checked:
    """Return whether the compute service is what it is to be."""
    service = _service_of(api, task.source)
    if service is None:
        return Failed(_unknown_host(task.source))
    match task.task:
        case HostTask.CORDON:
            done = not service.enabled
        case HostTask.UNCORDON:
            done = service.enabled or service.reason != reason_of(task)
        case HostTask.FENCE:
            done = service.forced_down and not service.up
        case _:
            return Failed(f"nova does no {task.task} of hosts: set a hook for it in [hooks], then retry")
    return Done() if done else NotBegun()


def reason_of(task: DriverTask) -> str:
    """Return the reason by which a service that this order has disabled is recognised."""
    return f"forewarn: order {task.order}"


def _service_of(api: ComputeApi, host: Host | None) -> ComputeService | None:
    return None if host is None else next(iter(api.services(host.name)), None)


def _unknown_host(host: Host | None) -> str:
    name = "no host" if host is None else host.name
    return f"nova has no compute service on {name}: hosts have to be called as nova calls them"
