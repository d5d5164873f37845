"""The bodies of requests that place orders."""

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from forewarn.api.request_fields import HOST, NAME, TIME, free_text, seconds
from forewarn.api.request_models import Body, field, nullable, request_model
from forewarn.core.basic_types import EXTERNAL, HostName, ServiceMode, Work
from forewarn.core.catalogue import MAINTENANCE_WORK
from forewarn.core.errors import Invalid
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.wire.fields import choice, flag

DAY: Final = 86400


@request_model
class OrderBody(Body):
    """An order."""

    reason: str = field(free_text(), "Why the work is done. Records show it.", default="")


@request_model
class DriverFields(OrderBody):
    """The driver of an order or a rollout."""

    driver: str | None = nullable(
        NAME, "Driver that does the work. For operators only. Default: the driver of the host."
    )
    heartbeat_seconds: float | None = nullable(
        seconds(exclusiveMinimum=0, maximum=DAY),
        "External driver only: the work counts as failed after this time without a report.",
    )

    def check_heartbeat(self, driver: str | None) -> None:
        """Refuse a heartbeat for a driver that is not external."""
        if self.heartbeat_seconds is not None and driver not in (None, EXTERNAL):
            raise Invalid('heartbeat_seconds: expected only with driver "external"')


@request_model
class PlanFields(OrderBody):
    """When and how machines of a host may be disturbed."""

    deadline: datetime | None = nullable(
        TIME,
        "From this time on maintenance windows do not apply, and guests cannot defer events (RFC 3339).",
    )
    expected_seconds: float | None = nullable(
        seconds(exclusiveMinimum=0, maximum=7 * DAY),
        "Expected length of the work of a stage. It must fit into the projects' maintenance windows.",
    )
    together: str | None = nullable(
        free_text(least=1),
        "Why all machines of a host start together although it carries two update domains of a group. "
        "Each affected group gets a record of a broken promise.",
    )


@request_model
class WholeFields(PlanFields):
    """The same for maintenance, which may disturb all machines of a host together."""

    whole: bool = field(
        flag,
        "Announce and start all machines of a host together. "
        "Refused with 409 if the host carries two update domains of a group.",
        default=False,
    )


@request_model
class ServiceFields(OrderBody):
    """Work on a host itself."""

    mode: ServiceMode | None = nullable(
        choice(tuple(ServiceMode)),
        "Host service only. `evacuate`: machines that can leave the host do so first. `in-place`: all "
        "restart with the host. Default: `evacuate`.",
    )
    returning: bool = field(
        flag,
        "Host service only: move the machines that left back afterwards, with a notice of their own.",
        default=False,
    )
    host_work: str | None = nullable(
        NAME,
        "Host service only: driver for the work on the host itself. `external`: another program does the "
        "work and reports it. Default: the hook in the settings or, without one, the driver of its machines.",
    )


@request_model
class HostOrderBody(DriverFields):
    """An order with its driver and terms."""

    emergency: str | None = nullable(
        free_text(least=1),
        "Why the minimum notice is not kept. The order gets a record of a broken promise.",
    )
    notice_seconds: float | None = nullable(
        seconds(minimum=0, maximum=30 * DAY), "Notice of an emergency. Default: none."
    )
    despite_hold: bool = field(flag, "Emergency only: ignore holds.", default=False)
    rehearsal: str | None = nullable(
        NAME,
        "Scenario that places the order. Refused with 409 unless all affected machines belong to projects "
        "that allow rehearsals.",
    )

    def request(self, by: str, **terms: Any) -> OrderRequest:
        """Return the order's terms."""
        self.check_heartbeat(self.driver)
        return self.order_request(by, **terms)

    def order_request(self, by: str, **terms: Any) -> OrderRequest:
        """Check what an emergency needs, and return the order's terms."""
        if self.emergency is None and self.notice_seconds is not None:
            raise Invalid("notice_seconds: expected only with emergency, the reason for shorter notice")
        if self.emergency is None and self.despite_hold:
            raise Invalid("despite_hold: expected only with emergency, the reason to ignore holds")
        return self.build(OrderRequest, by=by, terms=self.build(OrderTerms, **terms))


@request_model
class MaintenanceBody(WholeFields, HostOrderBody):
    """Maintenance of all machines of a host."""

    action: Work = field(choice(MAINTENANCE_WORK), "Work on each machine.")


@request_model
class ServiceBody(ServiceFields, PlanFields, HostOrderBody):
    """Work on a host itself."""

    def request(self, by: str, **terms: Any) -> OrderRequest:
        """Return the order's terms, with the driver for the work on the host itself."""
        self.check_heartbeat(EXTERNAL if self.host_work == EXTERNAL else self.driver)
        if self.returning and self.mode is ServiceMode.IN_PLACE:
            raise Invalid("returning: not with mode in-place, where no machine leaves the host")
        return self.order_request(by, **terms, host_driver=self.host_work)


@request_model
class FailBody(HostOrderBody):
    """The failure of a host."""

    fenced: str | None = nullable(
        free_text(least=1),
        "Confirm that the host is powered off or isolated, and why you know. Its machines are recovered at "
        "once, without waiting for a fence. You can send it for a host that has already failed.",
    )


@request_model
class MachineOrderBody(HostOrderBody):
    """An order on a machine."""

    now: bool = field(
        flag,
        "Start without waiting for the guests. The machine's owner approves with the order.",
        default=False,
    )


@request_model
class MoveBody(HostOrderBody):
    """A move of a machine."""

    to: HostName | None = nullable(HOST, "Target host. Default: the best host, as for a redeploy.")
    live: bool = field(
        flag,
        "Migrate the machine while it runs, with a Freeze of seconds. Otherwise it is redeployed.",
        default=False,
    )

    def request(self, by: str, **terms: Any) -> OrderRequest:
        """Return the order's terms, with what a move does to the machine."""
        work = Work.FREEZE if self.live else Work.REDEPLOY
        return replace(HostOrderBody.request(self, by, **terms), work=work)
