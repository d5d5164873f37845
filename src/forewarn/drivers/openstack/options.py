"""The options of the OpenStack driver: `[drivers.openstack]`."""

from dataclasses import dataclass
from datetime import timedelta

from forewarn.drivers.driver_setup import CallOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStackOptions(CallOptions):
    """The cloud, and how its machines are treated."""

    #: Name of the cloud in clouds.yaml. Default: from the environment (`OS_CLOUD`, `OS_AUTH_URL`,
    #: …).
    cloud: str = ""
    #: Region of the cloud. Default: the only region.
    region: str = ""
    #: Networks whose addresses are imported, in this order. Default: all.
    addresses: tuple[str, ...] = ()
    #: How long a machine is paused for a freeze in place.
    freeze_for: timedelta = timedelta(seconds=2)
    # nova waits two minutes for a guest to reboot before it resets the guest.
    #: Time for a soft reboot before a hard reboot.
    reboot_for: timedelta = timedelta(minutes=3)
    #: Terminate deletes the server; otherwise it stops the server.
    destroy: bool = False
    #: Forcing a compute service down counts as fencing.
    fences: bool = True
    #: Timeout of each request.
    answer_for: timedelta = timedelta(seconds=20)

    def __post_init__(self) -> None:
        CallOptions.__post_init__(self)  # super() does not work in a class with slots
        if self.answer_for <= timedelta():
            raise ValueError("answer-for: expected a time greater than zero")
