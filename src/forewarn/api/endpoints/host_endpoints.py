"""Endpoints of hosts and drivers: show them, declare a host, and place orders on one."""

from collections.abc import Mapping
from typing import Annotated, Any

from forewarn.api.inputs import DeclaredNameInPath, HostInPath, PageQuery, RawBodyInput
from forewarn.api.order_bodies import FailBody, HostOrderBody, MaintenanceBody, OrderBody, ServiceBody
from forewarn.api.request_headers import PutCondition, tag_of
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerReading, Service, WholeTx
from forewarn.control.fleet.fleet_views import FleetViews
from forewarn.control.host_reachability import ReachState
from forewarn.core.basic_types import Action, HostName
from forewarn.core.model.declaration import HostDrivers, HostSpec, host_spec
from forewarn.core.model.host import Host
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.wire import declarations, fleet
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.fleet_answers import DriverAnswer, HostWithMachinesAnswer, ListedHostAnswer
from forewarn.wire.answers.order_answers import OrderWithEventsAnswer

router = ApiRouter("hosts")


@router.call("GET /v1/hosts", "List hosts")
def list_hosts(page: PageQuery, reads: CallerReading) -> Page[ListedHostAnswer]:
    """List hosts by name, with their load."""
    views = reads.fleet.views
    found = views.hosts(after=page.after, limit=page.limit)
    shown = [
        ListedHostAnswer.like(host, found.loads[host.name], **_driven(views, host, found.drivers))
        for host in found.hosts
    ]
    return Page(kind=ListedHostAnswer, items=shown, next=found.after)


@router.call("GET /v1/hosts/{name}", "Show a host")
def show_host(name: HostInPath, reads: CallerReading) -> WithStatus[HostWithMachinesAnswer]:
    """Return a host with its machines. The ETag is that of its declaration."""
    return _shown(reads.fleet.views, name)


def _shown(views: FleetViews, name: str, *, status: int = 200) -> WithStatus[HostWithMachinesAnswer]:
    host, machines, drivers = views.host(name)
    answer = HostWithMachinesAnswer.of(host, machines, **_driven(views, host, drivers))
    return WithStatus(answer, status, tag_of(fleet.write_host(host_spec(host))))


def _driven(views: FleetViews, host: Host, drivers: HostDrivers) -> dict[str, object]:
    driver = drivers.of(host.name)
    known = views.reachability(host, driver=driver)
    is_away = known.state is ReachState.UNREACHABLE
    return {
        "driver": driver,
        "reachable": None if known.state is ReachState.UNKNOWN else not is_away,
        "reached_at": known.last_reached,
        "unreachable_since": known.since if is_away else None,
        "unreachable_because": known.why or None if is_away else None,
    }


@router.call("POST /v1/hosts/{name}/maintenance", "Maintain a host", status=202)
def maintain_host(
    name: HostInPath, body: MaintenanceBody, service: Service, tx: WholeTx
) -> OrderWithEventsAnswer:
    """Freeze, reboot or redeploy all machines on a host, one update domain of each group at a time."""
    placed = service.fleet.hosts.order_host(
        tx, name, Action.MAINTENANCE, body.request(service.by), work=body.action
    )
    return OrderWithEventsAnswer.like(placed)


@router.call("POST /v1/hosts/{name}/service", "Service a host", status=202)
def service_host(
    name: HostInPath, service: Service, tx: WholeTx, body: ServiceBody | None = None
) -> OrderWithEventsAnswer:
    """Work on the host itself. Machines that can leave it do so first. The others restart with it."""
    return _ordered(Action.SERVICE, name, body, service, tx)


@router.call("POST /v1/hosts/{name}/fail", "Report a failed host", status=202)
def fail_host(
    name: HostInPath, service: Service, tx: WholeTx, body: FailBody | None = None
) -> OrderWithEventsAnswer:
    """Recover the machines of a host on other hosts, once it is fenced or you confirm that it is off."""
    return _ordered(Action.FAIL, name, body, service, tx)


@router.call("POST /v1/hosts/{name}/wait", "Give a lost host more time", status=202)
def wait_for_host(
    name: HostInPath, service: Service, tx: WholeTx, body: OrderBody | None = None
) -> OrderWithEventsAnswer:
    """Continue to wait for a host that did not come back from its work in time.

    It gets the same time again. Other hosts cannot be waited for: 409.
    """
    placed = service.fleet.hosts.wait_for(tx, name, by=service.by, why=body.reason if body else "")
    return OrderWithEventsAnswer.like(placed)


_SIMPLE_ORDERS = {
    Action.DEGRADE: (
        "Report a degrading host",
        "Report that a host is going to fail. Its machines move to other hosts within days.",
    ),
    Action.RESTORE: ("Restore a host", "Report that a host is sound again. Its state becomes `ok`."),
    Action.CORDON: ("Cordon a host", "Stop placing machines on a host. Its machines stay."),
    Action.UNCORDON: ("Uncordon a host", "Allow a cordoned host to take machines again."),
}


def _add_order(action: Action, summary: str, description: str) -> None:
    @router.call(
        f"POST /v1/hosts/{{name}}/{action}",
        summary,
        status=202,
        description=description,
        operation_id=f"{action}_host",
    )
    def order_host(
        name: HostInPath, service: Service, tx: WholeTx, body: HostOrderBody | None = None
    ) -> OrderWithEventsAnswer:
        return _ordered(action, name, body, service, tx)


for _action, _texts in _SIMPLE_ORDERS.items():
    _add_order(_action, *_texts)


def _ordered(
    action: Action, name: str, body: HostOrderBody | None, service: Service, tx: WholeTx
) -> OrderWithEventsAnswer:
    request = body.request(service.by) if body else OrderRequest(by=service.by)
    return OrderWithEventsAnswer.like(service.fleet.hosts.order_host(tx, name, action, request))


@router.call("GET /v1/drivers", "List drivers", tag="drivers")
def list_drivers(reads: CallerReading) -> Page[DriverAnswer]:
    """List drivers by name: those that are installed, and those that hosts name but are not installed."""
    found = reads.fleet.views.drivers()
    return Page(kind=DriverAnswer, items=[DriverAnswer.like(each) for each in found])


HostDeclaration = Annotated[Mapping[str, Any], RawBodyInput(declarations.HOST_CHANGES)]


@router.call("PUT /v1/hosts/{name}", "Create or change a host", also={201: "The host was created."})
def put_host(
    name: DeclaredNameInPath,
    body: HostDeclaration,
    condition: PutCondition,
    service: Service,
    tx: WholeTx,
) -> WithStatus[HostWithMachinesAnswer]:
    """Create or change a host. Omitted fields stay as they are. Null resets a field to its default."""

    def change(present: HostSpec | None) -> HostSpec:
        condition.check(f'host "{name}"', present, fleet.write_host)
        return declarations.read_host(body, name=name, present=present)

    new = service.fleet.puts.put_host(tx, HostName(name), change, by=service.by)
    return _shown(service.reads_in(tx).fleet.views, name, status=201 if new else 200)


@router.call("DELETE /v1/hosts/{name}", "Delete a host")
def delete_host(name: HostInPath, service: Service, tx: WholeTx) -> HostWithMachinesAnswer:
    """Remove a host from the fleet. While it carries machines or has an open order: 409."""
    shown = _shown(service.reads_in(tx).fleet.views, name).body
    service.fleet.puts.delete_host(tx, HostName(name), by=service.by)
    return shown
