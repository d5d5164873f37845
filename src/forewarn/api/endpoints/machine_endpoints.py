"""Endpoints of machines: show, declare and remove them, and place orders on one."""

from collections.abc import Mapping
from typing import Annotated, Any

from forewarn.api.inputs import ListQuery, MachineInPath, NewMachineInPath, RawBodyInput
from forewarn.api.order_bodies import HostOrderBody, MachineOrderBody, MoveBody
from forewarn.api.request_fields import GROUP, HOST, LINE, MACHINE, PROJECT
from forewarn.api.request_headers import PutCondition, tag_of
from forewarn.api.request_models import Query, field, nullable, request_model
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerReading, ScopedTx, Service, Services, WholeTx
from forewarn.control.naming import narrowed
from forewarn.control.views import MachineView
from forewarn.core.access import Right
from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    GroupName,
    HostName,
    MachineName,
    ProjectName,
    Source,
)
from forewarn.core.catalogue import ON_MACHINES, ActionFacts
from forewarn.core.errors import Invalid
from forewarn.core.filters import MachineFilter
from forewarn.core.fleet.machines import spec_of
from forewarn.core.model.declaration import MachineSpec
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.store.batch import ScopedTransaction
from forewarn.wire import declarations, fleet
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.fleet_answers import MachineAnswer
from forewarn.wire.answers.order_answers import OrderOnMachineAnswer
from forewarn.wire.fields import several

router = ApiRouter("machines")

# This many names of the maximum length fit into a request line.
MOST_NAMES = 500

Declaration = Annotated[Mapping[str, Any], RawBodyInput(declarations.MACHINE_CHANGES)]


@request_model
class MachinesQuery(ListQuery):
    """A filter of machines."""

    group: GroupName | None = nullable(GROUP, "Only machines of this group.")
    host: HostName | None = nullable(HOST, "Only machines on this host.")
    bound_for: HostName | None = nullable(HOST, "Only machines that move to this host, or are going to.")
    name: tuple[MachineName, ...] = field(
        several(MACHINE, most=MOST_NAMES),
        "Only machines with this name. Repeat the parameter for several names. Unknown names are ignored.",
        default=(),
    )
    begins: MachineName | None = nullable(
        MACHINE, "Only machines whose name begins with this text. Case does not matter."
    )
    contains: str | None = nullable(
        LINE, "Only machines with this text in name, address or vm_id. Case does not matter."
    )


@request_model
class ProjectQuery(Query):
    """The project of a machine."""

    project: ProjectName | None = nullable(
        PROJECT, "Project of the machine. Required if machines of several projects have this name."
    )


@router.call("GET /v1/machines", "List machines", right=Right.SEE)
def list_machines(query: MachinesQuery, reads: CallerReading) -> Page[MachineAnswer]:
    """List machines by project and name. The order of names ignores case."""
    found, after = reads.narrowed(query.project).views.machines(
        query.build(MachineFilter, project=None, names=frozenset(query.name)),
        after=query.after,
        limit=query.limit,
    )
    return Page(kind=MachineAnswer, items=[_shown(view) for view in found], next=after)


@router.call("GET /v1/machines/{name}", "Show a machine", right=Right.SEE, errors=(409,))
def show_machine(name: MachineInPath, query: ProjectQuery, reads: CallerReading) -> WithStatus[MachineAnswer]:
    """Return a machine. The ETag is that of its declaration, which includes the host."""
    view = reads.narrowed(query.project).views.machine(name)
    return WithStatus(_shown(view), tag=_tag(view))


@router.call(
    "PUT /v1/machines/{name}",
    "Create or change a machine",
    also={201: "The machine was created."},
)
def put_machine(
    name: NewMachineInPath,
    body: Declaration,
    query: ProjectQuery,
    condition: PutCondition,
    service: Service,
    tx: WholeTx,
) -> WithStatus[MachineAnswer]:
    """Create or change a machine. Omitted fields stay as they are. Null resets a field to its default.

    Another `host` records that the machine was moved there. Another `name` renames it.
    """
    declared = declarations.read_machine(body, name=name, present=None)
    project, group = query.project, body.get("group")
    if "project" in body:
        _check_same(project or declared.project, declared.project, "as in the query")
        project = declared.project
    created, reads = False, service.reads_in(tx)
    if condition.is_new and project is None:
        # Without this, a machine with the same name in another project would count as existing.
        project = reads.views.group(group).project if isinstance(group, str) else DEFAULT_PROJECT

    def change(present: MachineSpec | None) -> MachineSpec:
        nonlocal created
        created = present is None
        shown_name = name if present is None else present.name
        about = "" if present is None else _place(present)
        condition.check(f'machine "{shown_name}"', present, fleet.write_machine, about=about)
        # Without a project in its declaration, a new machine belongs to the project of the query.
        given = {"project": project, **body} if created and project else body
        return declarations.read_machine(given, name=name, present=present)

    if project is not None and isinstance(group, str):
        _check_same(reads.views.group(group).project, project, "the project of its group")
    machine = service.fleet.declarations.put_machine(tx, name, project=project, change=change, by=service.by)
    view = reads.narrowed(machine.project).views.machine(machine.name)
    return WithStatus(_shown(view), 201 if created else 200, _tag(view))


@router.call("DELETE /v1/machines/{name}", "Delete a machine")
def delete_machine(name: MachineInPath, query: ProjectQuery, service: Service, tx: WholeTx) -> MachineAnswer:
    """Remove a machine from the fleet and from the events that name it."""
    view = service.reads_in(tx).narrowed(query.project).views.machine(name)
    service.fleet.declarations.delete_machine(tx, name, project=view.machine.project, by=service.by)
    return _shown(view)


def _shown(view: MachineView) -> MachineAnswer:
    return MachineAnswer.of(view.machine, view.group, last_seen=view.last_seen)


def _tag(view: MachineView) -> str:
    return tag_of(fleet.write_machine(spec_of(view.machine, view.group)))


def _place(present: MachineSpec) -> str:
    group = f", group {present.group}" if present.group else ""
    return f"in project {present.project}{group}, on {present.host or 'no host'}"


def _check_same(expected: ProjectName, got: ProjectName, why: str) -> None:
    if got != expected:
        raise Invalid(f'project: expected "{expected}", {why}, got "{got}"')


def _add_order(action: Action, facts: ActionFacts) -> None:
    @router.call(
        f"POST /v1/machines/{{name}}/{action}",
        facts.about.partition(";")[0],
        right=Right.USE if facts.source is Source.USER else None,
        status=202,
        description=f"{facts.about}. `event` is the notice for guests. If it is null, `reason` tells why.",
        operation_id=f"{action}_machine",
        machine="name",
    )
    def order_machine(
        name: MachineInPath,
        query: ProjectQuery,
        service: Service,
        tx: ScopedTx,
        body: MachineOrderBody | None = None,
    ) -> OrderOnMachineAnswer:
        terms = {"at_once": body.now} if body else {}
        return _ordered(service, narrowed(tx, query.project), name, action, body, **terms)


def _ordered(
    service: Services,
    tx: ScopedTransaction,
    name: str,
    action: Action,
    body: HostOrderBody | None,
    **terms: Any,
) -> OrderOnMachineAnswer:
    request = body.request(service.by, **terms) if body else OrderRequest(by=service.by)
    placed = service.orders.order_machine(tx, name, action, request)
    event = EventAnswer.of(placed.events[0]) if placed.events else None
    return OrderOnMachineAnswer.like(placed, event=event, reason=placed.why_no_event)


for _action, _facts in ON_MACHINES.items():
    if _action is not Action.MOVE:  # it has a body of its own
        _add_order(_action, _facts)


@router.call(
    "POST /v1/machines/{name}/move",
    ON_MACHINES[Action.MOVE].about,
    status=202,
    machine="name",
)
def move_machine(
    name: MachineInPath,
    query: ProjectQuery,
    service: Service,
    tx: ScopedTx,
    body: MoveBody | None = None,
) -> OrderOnMachineAnswer:
    """Move a machine with notice: a Freeze for a live migration, otherwise a Redeploy.

    The move waits while another update domain of the group is disturbed, and while the target host has no
    room.
    """
    return _ordered(service, narrowed(tx, query.project), name, Action.MOVE, body)
