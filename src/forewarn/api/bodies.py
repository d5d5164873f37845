"""The bodies of orders, and what the rules take them for."""

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from forewarn.api.request_fields import HOST, NAME, TIME, free_text, seconds
from forewarn.api.request_parts import Body, declared, given, maybe
from forewarn.core.basic_types import EXTERNAL, HostName, ServiceMode, Work
from forewarn.core.catalogue import MAINTENANCE_WORK
from forewarn.core.errors import Invalid
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders.requests import OrderRequest
from forewarn.wire.fields import choice, flag

DAY: Final = 86400

WORK = choice(MAINTENANCE_WORK)
HEARTBEAT = (
    seconds(exclusiveMinimum=0, maximum=DAY),
    "How long an external driver may be silent before it has failed.",
)
DEADLINE = (TIME, "From then on windows give way, and guests cannot defer it any more (RFC 3339).")
EXPECTED = (
    seconds(exclusiveMinimum=0, maximum=7 * DAY),
    "How long the work of a stage is expected to take: so much must fit into the windows of projects.",
)

WHOLE = (
    flag,
    "Do a host in one go, all its machines announced and awaited together; "
    "409 if it carries two update domains of a group.",
)
TOGETHER = (
    free_text(least=1),
    "Why a host is done in one go though it carries two update domains of a group; "
    "recorded as a broken promise to those groups.",
)

MODE = (
    choice(tuple(ServiceMode)),
    "Whether machines that can leave do so first, or all restart with the host; left out: they leave.",
)
RETURNING = (flag, "Have the machines that left come back afterwards, with notice of its own.")
HOST_WORK = (
    NAME,
    'Who does the work on the host itself: "external" if somebody outside does and says so; '
    "left out: the hook of the settings, or else who does the work on its machines.",
)


@declared
class OrderBody(Body):
    """Why something is ordered."""

    reason: str = given(free_text(), "Why, for the records.", default="")


@declared
class HostOrderBody(OrderBody):
    """Who does the work, and how long they may be silent."""

    emergency: str | None = maybe(
        free_text(least=1), "Why the promised notice is not kept; recorded as a broken promise."
    )
    notice_seconds: float | None = maybe(
        seconds(minimum=0, maximum=30 * DAY), "The notice of an emergency; none if left out."
    )
    despite_hold: bool = given(flag, "An emergency that no hold stops.", default=False)
    driver: str | None = maybe(
        NAME, "Who does the work, for an operator to say; left out: as its host declares it."
    )
    heartbeat_seconds: float | None = maybe(*HEARTBEAT)
    rehearsal: str | None = maybe(
        NAME, "The scenario it is part of; 409 unless all machines concerned are of projects for it."
    )

    def request(self, by: str, **terms: Any) -> OrderRequest:
        """Return what is asked for beside the action, and by whom."""
        self.check_notice()
        check_heartbeat(self.heartbeat_seconds, self.driver)
        return self.asked(OrderRequest, by=by, terms=self.asked(OrderTerms, **terms))

    def check_notice(self) -> None:
        """Refuse a short notice that nobody has given a reason for."""
        if self.notice_seconds is not None and self.emergency is None:
            expected = "expected only beside an emergency, which says why notice is shortened"
            raise Invalid(f"notice_seconds: {expected}")
        if self.despite_hold and self.emergency is None:
            expected = "expected only beside an emergency, which says why no hold stops it"
            raise Invalid(f"despite_hold: {expected}")


@declared
class MaintenanceBody(HostOrderBody):
    """What is to be done to a host's machines."""

    action: Work = given(WORK)
    deadline: datetime | None = maybe(*DEADLINE)
    expected_seconds: float | None = maybe(*EXPECTED)
    whole: bool = given(*WHOLE, default=False)
    together: str | None = maybe(*TOGETHER)


@declared
class ServiceBody(HostOrderBody):
    """What becomes of a host's machines while the host itself is worked on, and who does that work."""

    mode: ServiceMode | None = maybe(*MODE)
    returning: bool = given(*RETURNING, default=False)
    host_work: str | None = maybe(*HOST_WORK)
    deadline: datetime | None = maybe(*DEADLINE)
    expected_seconds: float | None = maybe(*EXPECTED)
    together: str | None = maybe(*TOGETHER)

    def request(self, by: str, **terms: Any) -> OrderRequest:
        """Return what is asked for, and who works on the host itself."""
        self.check_notice()
        check_heartbeat(self.heartbeat_seconds, EXTERNAL if self.host_work == EXTERNAL else self.driver)
        if self.returning and self.mode is ServiceMode.IN_PLACE:
            raise Invalid("returning: in place no machine leaves, so that none can come back: leave it out")
        terms |= {"host_driver": self.host_work}
        return self.asked(OrderRequest, by=by, terms=self.asked(OrderTerms, **terms))


@declared
class FailBody(HostOrderBody):
    """That a host has failed, and who vouches that it does not touch its machines any more."""

    fenced: str | None = maybe(
        free_text(least=1),
        "Why the host is known to touch its machines no more, by the word of the caller: they are recovered "
        "at once, without waiting for it to be fenced. Also for a host that is failed already.",
    )


@declared
class MachineOrderBody(HostOrderBody):
    """Why something is ordered, and on what terms."""

    now: bool = given(
        flag,
        "Do not wait for the guests: the word of the machine's owner is approval enough.",
        default=False,
    )


@declared
class MoveBody(HostOrderBody):
    """Where a machine is to go, and how."""

    to: HostName | None = maybe(HOST, "The host that it goes to; left out: the best one, as for a redeploy.")
    live: bool = given(
        flag, "Move it while it runs: a Freeze of seconds. Otherwise it is redeployed.", default=False
    )

    def request(self, by: str, **terms: Any) -> OrderRequest:
        """Return what is asked for, and what that does to the machine."""
        work = Work.FREEZE if self.live else Work.REDEPLOY
        return replace(HostOrderBody.request(self, by, **terms), work=work)


def check_heartbeat(seconds: float | None, driver: str | None) -> None:
    """Refuse a heartbeat that would be asked of a driver of our own."""
    if seconds is not None and driver not in (None, EXTERNAL):
        raise Invalid('heartbeat_seconds: expected only beside driver "external"')
