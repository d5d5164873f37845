"""The OpenStack driver: steps of machines through `ServerSteps`, and tasks on hosts."""

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
    NoNovaAnswer,
    NovaRefused,
    check_installed,
)
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.server_steps import ServerSteps

# nova itself takes a minute to detect that a compute service is down.
REACH_EVERY = timedelta(seconds=30)
DOWN = "nova reports its compute service as down"


def make(setup: DriverSetup) -> "OpenStackDriver":
    """Create the driver from its options; it connects to the cloud on the first call."""
    options = setup.read(OpenStackOptions())
    check_installed()
    return OpenStackDriver(options, ComputeApi(options), ServerAttempts(setup.monotonic))


class OpenStackDriver:
    """Carries out steps with nova."""

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
        """Begin a step; a refusal is Failed, and no answer is Unknown."""
        if (refused := self._attempts.refusal(task)) is not None:
            return refused
        try:
            if task.machine is None:
                return begin_host_task(self._api, task)
            answer = self._servers.begin(task)
        except NoNovaAnswer as error:
            return Unknown(f"{error}")
        except NovaRefused as error:
            return Failed(f"nova refuses: {error}")
        return Unknown("nova has not begun") if isinstance(answer, NotBegun) else answer

    def check(self, task: DriverTask) -> Checked:
        """Check a step and continue it."""
        if (refused := self._attempts.refusal(task)) is not None:
            return refused
        try:
            if task.machine is None:
                return check_host_task(self._api, task)
            return self._servers.check(task)
        except (NoNovaAnswer, NovaRefused) as error:
            return Unknown(f"{error}")

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Cancel a step of a machine; a task on a host takes effect at once."""
        if task.machine is None:
            return TooLate()
        try:
            return self._servers.cancel(task)
        except (NoNovaAnswer, NovaRefused) as error:
            return Unknown(f"{error}")

    # Hosts

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        """Return why the target host cannot take a machine, if nova reports a reason."""
        target = task.target
        if target is None:
            return None
        try:
            service = _service_of(self._api, target)
        except NoNovaAnswer as error:
            return Unknown(f"{error}")
        except NovaRefused:
            return None  # `begin` will report the refusal
        if service is None:
            return _unknown_host(target)
        if not service.enabled:
            return f"its compute service is disabled in nova: {service.reason or 'without a reason'}"
        return None if service.up else DOWN

    def reach(self, host: Host) -> str | None:
        """Return why a host is unreachable, from the state of its compute service."""
        try:
            service = _service_of(self._api, host)
        except (NoNovaAnswer, NovaRefused) as error:
            return f"{error}"
        if service is None:
            return _unknown_host(host)
        return None if service.up else DOWN

    def inventory(self, hosts: Sequence[Host]) -> FoundFleet:
        """List the servers, hosts and server groups of the cloud."""
        return inventory.list_cloud(self._api, self._networks)


def begin_host_task(api: ComputeApi, task: DriverTask) -> Begun:
    """Change the compute service of a host and verify the change."""
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
    return Unknown("nova does not show the change yet") if isinstance(answer, NotBegun) else answer


def check_host_task(api: ComputeApi, task: DriverTask) -> Checked:
    """Return Done if the compute service has the wanted state."""
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
            return Failed(f"nova cannot {task.task} hosts: set a hook for it in [hooks], then retry")
    return Done() if done else NotBegun()


def reason_of(task: DriverTask) -> str:
    """Return the reason that marks a service as disabled by this order."""
    return f"forewarn: order {task.order}"


def _service_of(api: ComputeApi, host: Host | None) -> ComputeService | None:
    return None if host is None else next(iter(api.services(host.name)), None)


def _unknown_host(host: Host | None) -> str:
    name = "no host" if host is None else host.name
    return f"nova has no compute service on {name}: declare the host by its name in nova"
