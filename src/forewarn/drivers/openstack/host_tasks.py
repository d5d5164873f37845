"""What is done to a host itself: its compute service is disabled, enabled again, or forced down.

Each is a state of the service, so what has become of a step is seen there. Who has disabled a service is told
by its reason: what others have disabled, before or since, stays so.
"""

from forewarn.control.driver import Checked, Done, DriverTask, Failed, NotBegun, Unknown
from forewarn.core.words import HostTask
from forewarn.drivers.openstack.compute_api import ComputeApi, ComputeService


def begin(api: ComputeApi, task: DriverTask) -> Checked:
    """Have the compute service of a host changed, and see that it was."""
    service = _find(api, task)
    if service is None:
        return _missing(task)
    match task.task:
        case HostTask.CORDON if service.enabled:
            api.disable(service, reason_of(task))
        case HostTask.UNCORDON if not service.enabled and service.reason == reason_of(task):
            api.enable(service)
        case HostTask.FENCE if not service.forced_down:
            api.force_down(service)
    answer = check(api, task)
    return Unknown("nova was asked, and does not show it yet") if isinstance(answer, NotBegun) else answer


def check(api: ComputeApi, task: DriverTask) -> Checked:
    """Return whether the compute service is what it is to be."""
    service = _find(api, task)
    if service is None:
        return _missing(task)
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


def _find(api: ComputeApi, task: DriverTask) -> ComputeService | None:
    return next(iter(api.services(task.source.name)), None) if task.source is not None else None


def _missing(task: DriverTask) -> Failed:
    host = task.source.name if task.source is not None else "no host"
    return Failed(f"nova has no compute service on {host}: hosts have to be called as nova calls them")
