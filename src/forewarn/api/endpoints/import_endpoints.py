"""Importing the fleet from a driver that knows what there is."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from starlette.requests import Request

from forewarn.api.audit import changes_nothing
from forewarn.api.endpoints.fleet_endpoints import save_fleet
from forewarn.api.inputs import TableInBody
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, Service, Services
from forewarn.control.fleet.importing_fleet import CheckedImport, check_takeable
from forewarn.core.fleet.import_terms import ImportTerms
from forewarn.core.model.found_fleet import confirmed
from forewarn.wire import fields
from forewarn.wire.answers.fleet_answers import ImportAnswer
from forewarn.wire.fields import Field, Fields, object_schema

router = ApiRouter("fleet")

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


@router.call("POST /v1/fleet/import", "Import what a driver finds", errors=(409, 413, 503))
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
    source, take = given["from"], check_takeable(given.get("take", ()))
    before = await service.read(
        lambda reads: reads.fleet.dry_runs.before_import(source, given.get("hosts", {}))
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
