"""Machines: show, declare, remove, and order something to be done to one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from forewarn.api.bodies import MachineOrderBody, MoveBody
from forewarn.api.inputs import ListQuery, MachineInPath, NewMachineInPath, TableInBody
from forewarn.api.request_fields import GROUP, HOST, LINE, MACHINE, PROJECT, several
from forewarn.api.request_headers import Condition, PutCondition, tag_of
from forewarn.api.request_parts import Query, declared, given, maybe
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerName, CallerReading, ScopedTx, Service, Services
from forewarn.control.naming import narrowed
from forewarn.control.orders.order_use_cases import Placed
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
from forewarn.core.orders.requests import OrderRequest
from forewarn.store.batch import Transaction
from forewarn.wire import fleet
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.fleet_answers import MachineAnswer
from forewarn.wire.answers.order_answers import OrderAnswer, OrderOnMachineAnswer

router = ApiRouter("machines")

# As many as fit into a request line, of whatever length.
MOST_NAMES = 500

Declaration = Annotated[Mapping[str, Any], TableInBody(fleet.MACHINE_CHANGES)]


@declared
class MachinesQuery(ListQuery):
    """Which machines."""

    group: GroupName | None = maybe(GROUP, "Only of this group.")
    host: HostName | None = maybe(HOST, "Only on this host.")
    bound_for: HostName | None = maybe(HOST, "Only those that move to this host, or will.")
    name: tuple[MachineName, ...] = given(
        several(MACHINE, most=MOST_NAMES),
        "Only of these names; one that nothing has is passed over.",
        default=(),
    )
    begins: MachineName | None = maybe(MACHINE, "Only those whose names begin so, in any case.")
    contains: str | None = maybe(LINE, "Only those with this in name, address or vm-id, in any case.")


@declared
class ProjectQuery(Query):
    """Whose machine."""

    project: ProjectName | None = maybe(PROJECT, "Its project; needed where several have the name.")


@router.call("GET /v1/machines", "List machines", right=Right.SEE, errors=(404,))
def list_machines(query: MachinesQuery, reads: CallerReading) -> Page[MachineAnswer]:
    """List machines by project and name; names are compared without their case."""
    found, after = reads.narrowed(query.project).views.machines(
        MachineFilter(
            group=query.group,
            host=query.host,
            bound_for=query.bound_for,
            names=frozenset(query.name),
            begins=query.begins or "",
            contains=query.contains or "",
        ),
        after=query.after,
        limit=query.limit,
    )
    return Page(kind=MachineAnswer, items=[_shown(view) for view in found], next=after)


@router.call("GET /v1/machines/{name}", "Show a machine", right=Right.SEE, errors=(404, 409))
def show_machine(name: MachineInPath, query: ProjectQuery, reads: CallerReading) -> WithStatus[MachineAnswer]:
    """Show a machine, whether its group listens (`enabled`), and when it was last seen.

    The ETag is that of its declaration; a machine that was moved has another one.
    """
    view = reads.narrowed(query.project).views.machine(name)
    return WithStatus(_shown(view), tag=_tag(view))


@router.call(
    "PUT /v1/machines/{name}",
    "Add or change a machine",
    errors=(404, 409, 413),
    also={201: "The machine is new."},
)
async def put_machine(
    name: NewMachineInPath,
    body: Declaration,
    query: ProjectQuery,
    condition: PutCondition,
    service: Service,
    caller: CallerName,
) -> WithStatus[MachineAnswer]:
    """Add a machine, or change one: what the body leaves out stays as it is, what is null goes.

    Another `host` means that it has been moved there; another `name` renames it.
    """
    declared = fleet.read_machine(body, name=name, present=None)
    project = query.project
    if "project" in body:
        _check_same(project or declared.project, declared.project, "as in the query")
        project = declared.project
    wanted = _MachinePut(name=name, body=body, project=project, condition=condition)
    view, created = await service.run_whole(lambda tx: _put(service, tx, wanted, by=caller))
    return WithStatus(_shown(view), 201 if created else 200, _tag(view))


@router.call("DELETE /v1/machines/{name}", "Remove a machine", errors=(404, 409))
async def delete_machine(
    name: MachineInPath, query: ProjectQuery, service: Service, caller: CallerName
) -> MachineAnswer:
    """Take a machine out of the fleet; it leaves the events that name it."""
    return _shown(await service.run_whole(lambda tx: _delete(service, tx, name, query.project, caller)))


def _shown(view: MachineView) -> MachineAnswer:
    return MachineAnswer.of(view.machine, view.group, last_seen=view.last_seen)


def _tag(view: MachineView) -> str:
    return tag_of(fleet.write_machine(spec_of(view.machine, view.group)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _MachinePut:
    name: str
    body: Mapping[str, Any]
    project: ProjectName | None
    condition: Condition


def _put(service: Services, tx: Transaction, wanted: _MachinePut, *, by: str) -> tuple[MachineView, bool]:
    name, body, project, condition = wanted.name, wanted.body, wanted.project, wanted.condition
    created, reads = False, service.reads_in(tx)
    if condition.is_new and project is None:
        # Machines of other projects may have the name of a new one.
        group = body.get("group")
        project = reads.views.group(group).project if isinstance(group, str) else DEFAULT_PROJECT

    def change(present: MachineSpec | None) -> MachineSpec:
        nonlocal created
        created = present is None
        condition.check(
            f'machine "{name if present is None else present.name}"',
            None if present is None else fleet.write_machine(present),
            about="" if present is None else _place(present),
        )
        # A new machine is in the project that the query names, if its declaration does not say.
        given = {"project": project, **body} if created and project else body
        return fleet.read_machine(given, name=name, present=present)

    if project is not None and isinstance(body.get("group"), str):
        _check_same(reads.views.group(body["group"]).project, project, "the project of its group")
    machine = service.fleet.declarations.put_machine(tx, name, project=project, change=change, by=by)
    return reads.narrowed(machine.project).views.machine(machine.name), created


def _place(present: MachineSpec) -> str:
    group = f", group {present.group}" if present.group else ""
    return f"in project {present.project}{group}, on {present.host or 'no host'}"


def _check_same(expected: ProjectName, got: ProjectName, why: str) -> None:
    if got != expected:
        raise Invalid(f'project: expected "{expected}", {why}, got "{got}"')


def _delete(
    service: Services, tx: Transaction, name: str, project: ProjectName | None, by: str
) -> MachineView:
    view = service.reads_in(tx).narrowed(project).views.machine(name)
    service.fleet.declarations.delete_machine(tx, name, project=view.machine.project, by=by)
    return view


def _add_order(action: Action, facts: ActionFacts) -> None:
    @router.call(
        f"POST /v1/machines/{{name}}/{action}",
        facts.about,
        right=Right.USE if facts.source is Source.USER else None,
        status=202,
        errors=(404, 409, 413, 429),
        operation_id=f"{action}_machine",
        machine="name",
    )
    def order_machine(
        name: MachineInPath,
        query: ProjectQuery,
        service: Service,
        tx: ScopedTx,
        caller: CallerName,
        body: MachineOrderBody | None = None,
    ) -> OrderOnMachineAnswer:
        request = body.request(caller, at_once=body.now) if body else OrderRequest(by=caller)
        mine = narrowed(tx, query.project)
        return _placed(service.orders.order_machine(mine, name, action, request))


def _placed(placed: Placed) -> OrderOnMachineAnswer:
    return OrderOnMachineAnswer(
        order=OrderAnswer.of(placed.order),
        event=EventAnswer.of(placed.events[0]) if placed.events else None,
        reason=placed.why_no_event,
    )


for _action, _facts in ON_MACHINES.items():
    if _action is not Action.MOVE:  # which says where and how
        _add_order(_action, _facts)


@router.call(
    "POST /v1/machines/{name}/move",
    ON_MACHINES[Action.MOVE].about,
    status=202,
    errors=(404, 409, 413),
    machine="name",
)
def move_machine(
    name: MachineInPath,
    query: ProjectQuery,
    service: Service,
    tx: ScopedTx,
    caller: CallerName,
    body: MoveBody | None = None,
) -> OrderOnMachineAnswer:
    """Move a machine with notice: a Freeze if it goes live, else a Redeploy.

    It waits while another update domain of its group is disturbed, and until its host has room for it.
    """
    request = body.request(caller) if body else OrderRequest(by=caller)
    mine = narrowed(tx, query.project)
    return _placed(service.orders.order_machine(mine, name, Action.MOVE, request))
