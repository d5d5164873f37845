"""Hosts and the drivers of their work: show them, declare a host, and order something to be done to one."""

from collections.abc import Mapping
from typing import Annotated, Any

from forewarn.api.bodies import FailBody, HostOrderBody, MaintenanceBody, OrderBody, ServiceBody
from forewarn.api.inputs import (
    DeclaredNameInPath,
    HostInPath,
    PageQuery,
    TableInBody,
)
from forewarn.api.request_headers import PutCondition, tag_of
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerName, CallerReading, Service, WholeTx
from forewarn.control.fleet.fleet_views import FleetViews
from forewarn.control.host_reachability import ReachState
from forewarn.core.basic_types import Action, HostName
from forewarn.core.model.declaration import HostDrivers, HostSpec, host_spec
from forewarn.core.model.host import Host
from forewarn.core.orders.requests import OrderRequest
from forewarn.store.batch import Transaction
from forewarn.wire import fleet
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.fleet_answers import DriverAnswer, HostWithMachinesAnswer, ListedHostAnswer
from forewarn.wire.answers.order_answers import OrderWithEventsAnswer

router = ApiRouter("hosts")


@router.call("GET /v1/hosts", "List hosts")
def list_hosts(page: PageQuery, reads: CallerReading) -> Page[ListedHostAnswer]:
    """List hosts by name."""
    views = reads.fleet.views
    found = views.hosts(after=page.after, limit=page.limit)
    shown = [
        ListedHostAnswer.of(
            host, found.loads[host.name], found.drivers, **_reached(views, host, found.drivers)
        )
        for host in found.hosts
    ]
    return Page(kind=ListedHostAnswer, items=shown, next=found.after)


@router.call("GET /v1/hosts/{name}", "Show a host", errors=(404,))
def show_host(name: HostInPath, reads: CallerReading) -> WithStatus[HostWithMachinesAnswer]:
    """Show a host and what it carries; the ETag is that of its declaration."""
    return shown_host(reads.fleet.views, name)


def shown_host(views: FleetViews, name: str, *, status: int = 200) -> WithStatus[HostWithMachinesAnswer]:
    """Show a host, what it carries, and whether it is reached."""
    host, machines, drivers = views.host(name)
    answer = HostWithMachinesAnswer.of(host, machines, drivers, **_reached(views, host, drivers))
    return WithStatus(answer, status, tag_of(fleet.write_host(host_spec(host))))


def _reached(views: FleetViews, host: Host, drivers: HostDrivers) -> dict[str, object]:
    """Return whether a host is reached, if that is known."""
    known = views.reachability(host, driver=drivers.of(host.name))
    is_away = known.state is ReachState.UNREACHABLE
    return {
        "reachable": None if known.state is ReachState.UNKNOWN else not is_away,
        "reached_at": known.last_reached,
        "unreachable_since": known.since if is_away else None,
        "unreachable_because": known.why or None if is_away else None,
    }


@router.call("POST /v1/hosts/{name}/maintenance", "Maintain a host", status=202, errors=(404, 409, 413))
def maintain_host(
    name: HostInPath, body: MaintenanceBody, service: Service, tx: WholeTx, caller: CallerName
) -> OrderWithEventsAnswer:
    """Freeze, reboot or redeploy all that a host carries, one update domain of a group at a time."""
    placed = service.fleet.hosts.order_host(
        tx, name, Action.MAINTENANCE, body.request(caller), work=body.action
    )
    return OrderWithEventsAnswer.of(placed.order, placed.events)


@router.call("POST /v1/hosts/{name}/service", "Work on a host itself", status=202, errors=(404, 409, 413))
def service_host(
    name: HostInPath, service: Service, tx: WholeTx, caller: CallerName, body: ServiceBody | None = None
) -> OrderWithEventsAnswer:
    """Work on a host itself: machines that can leave do so first, a few at a time; the others restart."""
    request = body.request(caller) if body else OrderRequest(by=caller)
    placed = service.fleet.hosts.order_host(tx, name, Action.SERVICE, request)
    return OrderWithEventsAnswer.of(placed.order, placed.events)


@router.call(
    "POST /v1/hosts/{name}/fail",
    "Report that a host has failed: its machines come back on others",
    status=202,
    errors=(404, 409, 413),
)
def fail_host(
    name: HostInPath, service: Service, tx: WholeTx, caller: CallerName, body: FailBody | None = None
) -> OrderWithEventsAnswer:
    """Recover the machines of a host on others, once it is fenced or somebody vouches for it."""
    request = body.request(caller) if body else OrderRequest(by=caller)
    placed = service.fleet.hosts.order_host(tx, name, Action.FAIL, request)
    return OrderWithEventsAnswer.of(placed.order, placed.events)


@router.call("POST /v1/hosts/{name}/wait", "Give a lost host more time", status=202, errors=(404, 409, 413))
def wait_for_host(
    name: HostInPath, service: Service, tx: WholeTx, caller: CallerName, body: OrderBody | None = None
) -> OrderWithEventsAnswer:
    """Wait on for a host that did not come back from the work on it in time."""
    placed = service.fleet.hosts.wait_for(tx, name, by=caller, why=body.reason if body else "")
    return OrderWithEventsAnswer.of(placed.order, placed.events)


SUMMARIES = {
    Action.DEGRADE: "Report that a host is going to fail: its machines move within days",
    Action.RESTORE: "Report that a host is sound again",
    Action.CORDON: "Let a host take no more machines",
    Action.UNCORDON: "Let a host take machines again",
}


def _add_order(action: Action, summary: str) -> None:
    @router.call(
        f"POST /v1/hosts/{{name}}/{action}",
        summary,
        status=202,
        errors=(404, 409, 413),
        operation_id=f"{action}_host",
    )
    def order_host(
        name: HostInPath, service: Service, tx: WholeTx, caller: CallerName, body: HostOrderBody | None = None
    ) -> OrderWithEventsAnswer:
        request = body.request(caller) if body else OrderRequest(by=caller)
        placed = service.fleet.hosts.order_host(tx, name, action, request)
        return OrderWithEventsAnswer.of(placed.order, placed.events)


for _action, _summary in SUMMARIES.items():
    _add_order(_action, _summary)


driver_router = ApiRouter("drivers")


@driver_router.call("GET /v1/drivers", "List drivers")
def list_drivers(reads: CallerReading) -> Page[DriverAnswer]:
    """List by name who can do work, and those that hosts name though they are not installed."""
    found = reads.fleet.views.drivers()
    return Page(kind=DriverAnswer, items=[DriverAnswer.like(each) for each in found])


declaration_router = ApiRouter("fleet")

HostDeclaration = Annotated[Mapping[str, Any], TableInBody(fleet.HOST_CHANGES)]


@declaration_router.call(
    "PUT /v1/hosts/{name}", "Add or change a host", errors=(404, 409, 413), also={201: "The host is new."}
)
async def put_host(
    name: DeclaredNameInPath,
    body: HostDeclaration,
    condition: PutCondition,
    service: Service,
    caller: CallerName,
) -> WithStatus[HostWithMachinesAnswer]:
    """Add a host, or change one: what the body leaves out stays as it is, what is null goes."""

    def change(present: HostSpec | None) -> HostSpec:
        condition.check(f'host "{name}"', None if present is None else fleet.write_host(present))
        return fleet.read_host(body, name=name, present=present)

    def put(tx: Transaction) -> WithStatus[HostWithMachinesAnswer]:
        new = service.fleet.puts.put_host(tx, HostName(name), change, by=caller)
        return shown_host(service.reads_in(tx).fleet.views, name, status=201 if new else 200)

    return await service.run_whole(put)


@declaration_router.call("DELETE /v1/hosts/{name}", "Remove a host", errors=(404, 409, 413))
async def delete_host(name: HostInPath, service: Service, caller: CallerName) -> HostWithMachinesAnswer:
    """Take a host out of the fleet; 409 while it carries a machine, or something is ordered on it."""

    def delete(tx: Transaction) -> HostWithMachinesAnswer:
        shown = shown_host(service.reads_in(tx).fleet.views, name).body
        service.fleet.puts.delete_host(tx, HostName(name), by=caller)
        return shown

    return await service.run_whole(delete)
