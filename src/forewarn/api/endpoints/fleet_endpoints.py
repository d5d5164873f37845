"""Endpoints of the whole fleet: its declaration, its counts, and imports from hypervisors."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from starlette.requests import Request

from forewarn.api.audit import changes_nothing
from forewarn.api.inputs import RawBodyInput
from forewarn.api.request_fields import FLAG_IN_QUERY, GROUP, PROJECT
from forewarn.api.request_models import Body, Query, field, nullable, request_model
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, CallerReading, Service, Services
from forewarn.control.fleet.declarations import CheckedDomains
from forewarn.control.fleet.fleet_application import CheckedFleet
from forewarn.control.fleet.fleet_import import CheckedImport, parse_takeable
from forewarn.control.use_case import ExclusiveJob
from forewarn.core.access import Right
from forewarn.core.basic_types import GroupName, ProjectName
from forewarn.core.fleet.import_terms import ImportTerms
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.model.found_fleet import confirmed
from forewarn.wire import fields, fleet
from forewarn.wire.answers.fleet_answers import (
    AppliedFleetAnswer,
    FittedDomainsAnswer,
    FleetAnswer,
    ImportAnswer,
    SummaryAnswer,
)
from forewarn.wire.fields import Fields, flag, object_schema

T = TypeVar("T")

router = ApiRouter("fleet")

Declaration = Annotated[Mapping[str, Any], RawBodyInput(object_schema(fleet.FLEET))]


@request_model
class FleetQuery(Query):
    """How to apply a fleet."""

    dry_run: bool = field(FLAG_IN_QUERY, "Only return the changes.", default=False)


@request_model
class SummaryQuery(Query):
    """The scope of a summary."""

    project: ProjectName | None = nullable(PROJECT, "Count only this project.")


@router.call("GET /v1/summary", "Count the fleet", right=Right.SEE)
def show_summary(query: SummaryQuery, reads: CallerReading) -> SummaryAnswer:
    """Return the number of machines by group, update domain and state, and of other resources by state.

    After the named groups, `groups` has one entry per project with its standalone machines and without a
    name. The states of an update domain list only states that a machine is in. `rollouts` and `holds` are
    null for one project. `hosts` is null for callers that may not see hosts.
    """
    counted = reads.narrowed(query.project).views.summary()
    if counted.holds is not None:
        counted = replace(counted, holds=counted.holds + len(reads.fleet.unsaved_holds.in_force))
    return SummaryAnswer.like(counted)


@router.call("GET /v1/fleet", "Show the fleet")
def show_fleet(reads: CallerReading) -> FleetAnswer:
    """Return the present fleet as a declaration, which `PUT /v1/fleet` accepts."""
    return FleetAnswer(fleet=fleet.write_fleet(reads.fleet.views.fleet()))


def _try_fleet(body: Declaration, reads: CallerReading, caller: CallerName) -> AppliedFleetAnswer:
    changes = reads.fleet.dry_runs.changes(_declared(body), by=caller)
    return AppliedFleetAnswer(fleet=fleet.write_fleet(reads.fleet.views.fleet()), changes=changes)


@router.call("PUT /v1/fleet", "Apply a fleet", dry_run=_try_fleet)
async def put_fleet(
    body: Declaration, query: FleetQuery, request: Request, service: Service
) -> AppliedFleetAnswer:
    """Change the fleet to match a declaration: add, change and remove what differs.

    The whole declaration is checked first. If it is refused, nothing changes. A known machine stays on its
    present host.

    Many changes are saved in several transactions, with other requests in between. If such a request
    prevents a later change, the answer is 409 and tells how far the server got. Send the same declaration
    again to continue, also after a 503. While the server applies one declaration, it refuses others with 409.
    """
    changes = await _to_the_end(_apply(service, _declared(body), by=service.by))
    request.app.state.authenticator.forget()  # tokens of removed projects are gone
    present = await service.read(lambda reads: fleet.write_fleet(reads.fleet.views.fleet()))
    return AppliedFleetAnswer(fleet=present, changes=changes)


@request_model
class DomainsBody(Body):
    """Which update domains to align with hosts."""

    group: GroupName | None = nullable(GROUP, "Only this group. Default: all groups.")
    dry_run: bool = field(flag, "Only return the changes.", default=False)


def _try_domains(body: DomainsBody, reads: CallerReading, caller: CallerName) -> FittedDomainsAnswer:
    return _fitted(reads.fleet.dry_runs.domains(body.group, by=caller))


@router.call("POST /v1/fleet/domains", "Align update domains with hosts", dry_run=_try_domains)
async def fit_domains(body: DomainsBody, service: Service) -> FittedDomainsAnswer:
    """Give all machines of a group on one host the same update domain, so that a rollout needs fewer waves.

    Each group is spread evenly over its update domains as far as its hosts allow. If that does not reduce
    the number of waves, nothing changes. While an open event names a machine to change: 409.
    """
    return _fitted(await _to_the_end(_fit(service, body.group, by=service.by)))


def _fitted(checked: CheckedDomains) -> FittedDomainsAnswer:
    return FittedDomainsAnswer.like(checked.fitted, checked.fleet)


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Complete a change even if the client disconnects."""
    return await asyncio.shield(asyncio.ensure_future(work))


@asynccontextmanager
async def _alone(service: Services) -> AsyncIterator[None]:
    """Keep other declarations out. First find out whether an interrupted one was saved."""
    declarations = service.fleet.declarations
    with declarations.apply_lock.exclusive():
        if declarations.apply_lock.in_doubt:
            await service.run_whole(declarations.resolve_doubt)
        yield


async def _apply(service: Services, spec: FleetSpec, *, by: str) -> tuple[str, ...]:
    async with _alone(service):
        checked = await service.read(lambda reads: reads.fleet.dry_runs.check(spec, by=by))
        return await _save(service, checked, by=by)


async def _fit(service: Services, group: GroupName | None, *, by: str) -> CheckedDomains:
    async with _alone(service):
        checked = await service.read(lambda reads: reads.fleet.dry_runs.domains(group, by=by))
        await _save(service, checked.fleet, by=by)
    return checked


async def _save(service: Services, checked: CheckedFleet, *, by: str) -> tuple[str, ...]:
    """Save a fleet in several jobs, so that other requests run in between."""
    application = service.fleet.declarations.application(checked, by=by)
    with application.awaited():
        while not application.over:
            await service.run_whole(ExclusiveJob(application.apply_next))
    return application.changes


def _declared(body: Mapping[str, Any]) -> FleetSpec:
    # The body may be the answer of a GET.
    return fleet.read_fleet(body["fleet"] if body.keys() == {"fleet"} else body)


_MOST_FIELDS = 20

IMPORT: Fields = {
    "from": fields.name.about(
        "Driver that lists the machines: `libvirt`, `openstack`, or a driver of the settings."
    ),
    "hosts": fields.named_values(fields.uri, example='{ "kvm04": "qemu+ssh://kvm04/system" }').about(
        "Additional hosts to list, by name, with the URI of each."
    ),
    "take": fields.several(fields.text, most=_MOST_FIELDS).about(
        "Declared fields to overwrite with the driver's values, such as `address` or `mac`."
    ),
    "managed": fields.flag.about("Also import machines that another manager owns, such as Nova or oVirt."),
    "yes": fields.flag.about("Confirm an import that removes half of the imported machines or more."),
    "dry_run": fields.flag.about("Only return the changes."),
    "digest": fields.optional(fields.text).about(
        "`digest` of a dry run. If the difference has changed since then: 409."
    ),
}
_REQUIRED = {"from": "the name of a driver"}

ImportBody = Annotated[Mapping[str, Any], RawBodyInput(object_schema(IMPORT, _REQUIRED))]


@router.call("POST /v1/fleet/import", "Import machines from a driver")
async def import_fleet(body: ImportBody, request: Request, service: Service) -> ImportAnswer:
    """List the machines that a driver knows, and change the fleet to match.

    Machines that this driver imported before follow its list. Values that people declared stay. `conflicts`
    lists the values that differ, unless `take` names their field.

    Machines that were moved, started, stopped or deleted outside forewarn are updated. If no event announced
    that, a record `unannounced-impact` documents it. Machines of an unreachable host stay, and `notes` names
    the host.

    A dry run returns a `digest`. Send it with the import to apply exactly the changes of the dry run.
    """
    given = fields.read(body, IMPORT, "")
    fields.require(given, _REQUIRED, "")
    if given.get("dry_run"):
        changes_nothing(request.scope)  # also if it is refused
    imported = await _to_the_end(_import(service, given, by=service.by))
    if not imported.applied:
        changes_nothing(request.scope)  # a script may import once a minute
    return imported


async def _import(service: Services, given: Mapping[str, Any], *, by: str) -> ImportAnswer:
    source, take = given["from"], parse_takeable(given.get("take", ()))
    before = await service.read(
        lambda reads: reads.fleet.dry_runs.import_base(source, given.get("hosts", {}))
    )
    lister = service.inventories.lister(source)
    terms = ImportTerms(
        source=source, take=take, managed=given.get("managed", False), whole=not lister.lists_by_host
    )
    found = await service.inventories.ask(source, before.hosts)

    async def check() -> CheckedImport:
        return await service.read(
            lambda reads: reads.fleet.dry_runs.check_import(before, found, terms, by=by)
        )

    # Hosts are listed one after another. A machine that moves in between can be missing from both lists.
    if (await check()).plan.removes:
        found = confirmed(found, await service.inventories.ask(source, before.hosts))
    if given.get("dry_run"):
        return _answer(await check(), source, applied=False)
    async with _alone(service):
        checked = await check()
        checked.check(yes=given.get("yes", False), digest=given.get("digest"))
        await _save(service, checked.fleet, by=by)
    return _answer(checked, source, applied=bool(checked.fleet.changes))


def _answer(checked: CheckedImport, source: str, *, applied: bool) -> ImportAnswer:
    return ImportAnswer.like(checked.fleet, checked.plan, checked, source=source, applied=applied)
