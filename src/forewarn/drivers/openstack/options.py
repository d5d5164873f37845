"""The options of the OpenStack driver: `[drivers.openstack]`."""

from dataclasses import dataclass
from datetime import timedelta

from forewarn.drivers.driver_setup import CallOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStackOptions(CallOptions):
    """The cloud, and how its machines are treated."""

    cloud: str = ""  # its name in clouds.yaml; "": from the environment (OS_CLOUD, OS_AUTH_URL, …)
    region: str = ""  # "": the only region
    addresses: tuple[str, ...] = ()  # networks whose addresses are imported, in this order; (): all
    freeze_for: timedelta = timedelta(seconds=2)  # how long a frozen machine is paused
    # nova waits two minutes for a guest to reboot before it resets the guest.
    reboot_for: timedelta = timedelta(minutes=3)  # then a hard reboot follows a soft one
    destroy: bool = False  # Terminate deletes the server; otherwise it stops the server
    fences: bool = True  # forcing a compute service down counts as a fence
    answer_for: timedelta = timedelta(seconds=20)  # timeout of a request

    def __post_init__(self) -> None:
        CallOptions.__post_init__(self)  # super() does not work in a class with slots
        if self.answer_for <= timedelta():
            raise ValueError("answer-for: expected more than no time")
