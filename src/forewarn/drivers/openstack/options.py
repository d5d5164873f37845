"""What the settings may say of the driver: `[drivers.openstack]`."""

from dataclasses import dataclass
from datetime import timedelta

from forewarn.drivers.driver_setup import CallOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStackOptions(CallOptions):
    """Which cloud it is, and how its machines are treated."""

    cloud: str = ""  # as clouds.yaml names it; "": as the environment says (OS_CLOUD, OS_AUTH_URL, …)
    region: str = ""  # "": the cloud's only one
    addresses: tuple[str, ...] = ()  # the networks whose addresses are imported, in this order; (): all
    freeze_for: timedelta = timedelta(seconds=2)  # how long a machine that stays is paused
    # nova itself waits two minutes for a guest that was asked to reboot, and then resets it.
    reboot_for: timedelta = timedelta(minutes=3)  # for a soft reboot; then it is a hard one
    destroy: bool = False  # whether Terminate deletes the server; else it is stopped
    fences: bool = True  # whether forcing a compute service down fences its host
    answer_for: timedelta = timedelta(seconds=20)  # for the cloud to answer one request

    def __post_init__(self) -> None:
        CallOptions.__post_init__(self)  # super() does not work in a class with slots
        if self.answer_for <= timedelta():
            raise ValueError("answer-for: expected more than no time")
