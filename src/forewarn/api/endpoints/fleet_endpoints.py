"""The whole fleet: as it is declared, counted, and imported from hypervisors."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from starlette.requests import Request

from forewarn.api.audit import changes_nothing
from forewarn.api.inputs import TableInBody
from forewarn.api.request_fields import FLAG_IN_QUERY, GROUP, PROJECT
from forewarn.api.request_parts import Body, Query, declared, given, maybe
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, CallerReading, Service, Services
from forewarn.control.fleet.fleet_application import CheckedFleet
from forewarn.control.fleet.declarations import CheckedDomains
from forewarn.control.fleet.fleet_import import CheckedImport, parse_takeable
from forewarn.control.use_case import Alone
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
from forewarn.wire.fields import Field, Fields, flag, object_schema

router = ApiRouter("fleet")

Declaration = Annotated[Mapping[str, Any], TableInBody(object_schema(fleet.FLEET))]


@declared
class FleetQuery(Query):
    """How a fleet is applied."""

    dry_run: bool = given(FLAG_IN_QUERY, "Only say what would change.", default=False)


@declared
class SummaryQuery(Query):
    """What is counted."""

    project: ProjectName | None = maybe(PROJECT, "Only of this project.")


@router.call("GET /v1/summary", "Count the fleet", right=Right.SEE, errors=(404,))
def show_summary(query: SummaryQuery, reads: CallerReading) -> SummaryAnswer:
    """Count machines by group, update domain and state, and hosts, events and orders by their state.

    `groups` ends with the standalone machines of each project, taken together without a name. States of
    update domains are those that some machine is in. `rollouts` and `holds` are null where one project is
    asked for, `hosts` for who does not see hosts.
    """
    counted = reads.narrowed(query.project).views.summary()
    if counted.holds is not None:
        counted = replace(counted, holds=counted.holds + len(reads.fleet.unsaved_holds.in_force))
    return SummaryAnswer.like(counted)


@router.call("GET /v1/fleet", "Show the fleet as it is declared")
def show_fleet(reads: CallerReading) -> FleetAnswer:
    """Show what would have to be declared to get the present fleet."""
    return FleetAnswer(fleet=fleet.write_fleet(reads.fleet.views.fleet()))


def _try_fleet(body: Declaration, reads: CallerReading, caller: CallerName) -> AppliedFleetAnswer:
    changes = reads.fleet.dry_runs.changes(_declared(body), by=caller)
    return AppliedFleetAnswer(fleet=fleet.write_fleet(reads.fleet.views.fleet()), changes=changes)


@router.call(
    "PUT /v1/fleet",
    "Make the fleet what is declared",
    errors=(409, 413),
    dry_run=_try_fleet,
)
async def put_fleet(
    body: Declaration, query: FleetQuery, request: Request, service: Service, caller: CallerName
) -> AppliedFleetAnswer:
    """Add, change and remove what differs, and say in a line each what that is.

    What is declared is checked whole first, and changes nothing if it is refused. Many changes are saved in
    parts, between which other calls are answered. If one of these changes what a later part needs, the answer
    is 409 and says how far it got: the same declaration, sent again, goes on from there, as after
    a 503. While one is being applied, another is refused with 409. A machine that is
    known stays on the host it is on.
    """
    # What is begun is finished, also if the caller has gone.
    changes = await asyncio.shield(asyncio.ensure_future(_apply(service, _declared(body), by=caller)))
    request.app.state.authenticator.forget()  # a project that is gone has no tokens
    present = await service.read(lambda reads: fleet.write_fleet(reads.fleet.views.fleet()))
    return AppliedFleetAnswer(fleet=present, changes=changes)


@declared
class DomainsBody(Body):
    """Whose update domains are to follow the hosts."""

    group: GroupName | None = maybe(GROUP, "Only of this group; left out: of all.")
    dry_run: bool = given(flag, "Only say what would change.", default=False)


def _try_domains(body: DomainsBody, reads: CallerReading, caller: CallerName) -> FittedDomainsAnswer:
    return _fitted(reads.fleet.dry_runs.domains(body.group, by=caller))


@router.call(
    "POST /v1/fleet/domains",
    "Let update domains follow the hosts",
    errors=(404, 409),
    dry_run=_try_domains,
)
async def fit_domains(body: DomainsBody, service: Service, caller: CallerName) -> FittedDomainsAnswer:
    """Give machines of a group that are on one host one update domain, so that a rollout has few waves.

    Each group is spread evenly over its update domains as far as its hosts allow. Nothing changes if that
    makes no fewer waves. It is refused with 409 while an open event names a machine that would change.
    """
    return _fitted(await asyncio.shield(asyncio.ensure_future(_fit(service, body.group, by=caller))))


def _fitted(checked: CheckedDomains) -> FittedDomainsAnswer:
    return FittedDomainsAnswer.like(checked.fitted, checked.fleet)


async def _apply(service: Services, spec: FleetSpec, *, by: str) -> tuple[str, ...]:
    """Apply a fleet; every part is a job of its own, so that those of others come between."""
    declarations = service.fleet.declarations
    with declarations.turns.alone():
        if declarations.turns.in_doubt:
            await service.run_whole(declarations.resolve_doubt)
        checked = await service.read(lambda reads: reads.fleet.dry_runs.check(spec, by=by))
        return await save_fleet(service, checked, by=by)


async def _fit(service: Services, group: GroupName | None, *, by: str) -> CheckedDomains:
    """Fit update domains, and save them as a fleet is saved."""
    declarations = service.fleet.declarations
    with declarations.turns.alone():
        if declarations.turns.in_doubt:
            await service.run_whole(declarations.resolve_doubt)
        checked = await service.read(lambda reads: reads.fleet.dry_runs.domains(group, by=by))
        await save_fleet(service, checked.fleet, by=by)
    return checked


async def save_fleet(service: Services, checked: CheckedFleet, *, by: str) -> tuple[str, ...]:
    """Save the parts of a fleet, each a job of its own."""
    application = service.fleet.declarations.application(checked, by=by)
    with application.awaited():
        while not application.over:
            await service.run_whole(Alone(application.apply_next))
    return application.changes


def _declared(body: Mapping[str, Any]) -> FleetSpec:
    # What a GET answers may be sent back as it is.
    return fleet.read_fleet(body["fleet"] if body.keys() == {"fleet"} else body)


import_router = ApiRouter("fleet")

_MOST_FIELDS = 20


def _uris(value: object) -> dict[str, str]:
    found = {}
    for key, uri in fields.table(value, written='{ "kvm04": "qemu+ssh://kvm04/system" }').items():
        with fields.inside(f".{key}"):
            found[fields.name(key)] = fields.uri(uri)
    return found


IMPORT: Fields = {
    "from": fields.name.about("The driver that is asked: libvirt, openstack, or one of the settings."),
    "hosts": Field(
        read=_uris,
        schema={
            "type": "object",
            "propertyNames": {"pattern": fields.name.schema["pattern"]},
            "additionalProperties": fields.uri.schema,
        },
    ).about("Hosts to ask besides those of the fleet, and where each is reached."),
    "take": fields.several(fields.text, most=_MOST_FIELDS).about(
        "Fields of what people declared in which the source is right, as address or mac."
    ),
    "managed": fields.flag.about("Take machines, too, that another manager has, as nova or oVirt."),
    "yes": fields.flag.about("Also if that removes half of what the source had imported."),
    "dry_run": fields.flag.about("Only say what would change."),
    "digest": fields.optional(fields.text).about(
        "That of a dry run: 409 if the difference is another by now."
    ),
}
_REQUIRED = {"from": "the name of a driver"}

ImportBody = Annotated[Mapping[str, Any], TableInBody(object_schema(IMPORT, _REQUIRED))]


@import_router.call("POST /v1/fleet/import", "Import what a driver finds", errors=(409, 413, 503))
async def import_fleet(
    body: ImportBody, request: Request, service: Service, caller: CallerName
) -> ImportAnswer:
    """Ask a driver what there is, and make the fleet so; a line for each change.

    What the driver imported before follows it. What people declared or put is never overwritten: where the
    driver says otherwise is a line of `conflicts`, unless `take` names the field. Machines that other hands
    have moved, started, stopped or destroyed are followed; if no event told of it, a record
    `unannounced-impact` says so. A host that cannot be reached removes nothing and is said in `notes`. With
    `dry_run` nothing changes; its `digest`, sent along, makes sure that nothing else is done than was shown.
    """
    given = fields.read(body, IMPORT, "")
    fields.require(given, _REQUIRED, "")
    if given.get("dry_run"):
        changes_nothing(request.scope)  # also if it is refused
    # What is begun is finished, also if the caller has gone.
    imported = await asyncio.shield(asyncio.ensure_future(_import(service, given, by=caller)))
    if not imported.applied:
        changes_nothing(request.scope)  # a watcher imports once a minute
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

    # Hosts are not asked in one instant: what moved meanwhile may have been missed on both.
    if (await check()).plan.removes:
        found = confirmed(found, await service.inventories.ask(source, before.hosts))
    if given.get("dry_run"):
        return _answer(await check(), source, applied=False)
    declarations = service.fleet.declarations
    with declarations.turns.alone():
        if declarations.turns.in_doubt:
            await service.run_whole(declarations.resolve_doubt)
        checked = await check()
        checked.check(yes=given.get("yes", False), digest=given.get("digest"))
        await save_fleet(service, checked.fleet, by=by)
    return _answer(checked, source, applied=bool(checked.fleet.changes))


def _answer(checked: CheckedImport, source: str, *, applied: bool) -> ImportAnswer:
    return ImportAnswer(
        source=source,
        changes=checked.fleet.changes,
        conflicts=checked.plan.conflicts,
        notes=checked.plan.notes,
        removes=checked.plan.removes,
        of=checked.plan.of,
        removes_half=checked.removes_half,
        digest=checked.digest,
        applied=applied,
    )
