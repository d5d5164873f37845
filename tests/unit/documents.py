"""The documents behind the golden files; `python -m tests.unit.documents` writes the files again."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from forewarn.core.basic_types import (
    HINTS,
    EventId,
    EventStatus,
    EventType,
    GroupKind,
    GroupName,
    MachineId,
    MachineName,
    OrderId,
    ProjectName,
    Source,
)
from forewarn.core.guests.document import GroupDocument, document
from forewarn.core.model.event import Event, Resource
from forewarn.core.model.group import Group
from forewarn.wire.azure import VERSIONS, write_document

GOLDEN = Path(__file__).parent / "golden"
NOT_BEFORE = datetime(2016, 9, 19, 18, 29, 47, tzinfo=UTC)

DESCRIPTIONS = {
    EventType.FREEZE: "Host server is undergoing maintenance.",
    EventType.REBOOT: "Virtual machine is going to be restarted as requested by authorized user.",
    EventType.REDEPLOY: "Virtual machine is going to be redeployed as requested by authorized user.",
    EventType.PREEMPT: "",
    EventType.TERMINATE: 'Says "goodbye" for a while…',
    EventType.SPOT_REBALANCE_RECOMMENDATION: "Virtual machine is at an elevated risk of eviction.",
}
SOURCES = {EventType.REBOOT: Source.USER, EventType.REDEPLOY: Source.USER, EventType.TERMINATE: Source.USER}


def group(name: str = "web", *, kind: GroupKind = GroupKind.AVAILABILITY_SET, incarnation: int = 7) -> Group:
    return Group(name=GroupName(name), project=ProjectName("default"), kind=kind, incarnation=incarnation)


def event(
    type_: EventType,
    status: EventStatus = EventStatus.SCHEDULED,
    *,
    names: tuple[str, ...] = ("web-1", "Web-0"),
    number: int = 1,
) -> Event:
    return Event(
        id=EventId(f"602D9444-D2CD-49C7-8624-8643E717{number:04}"),
        number=number,
        order=OrderId("F0000000-0000-4000-8000-000000000000"),
        stage=0,
        group=GroupName("web"),
        update_domain=0,
        type=type_,
        status=status,
        source=SOURCES.get(type_, Source.PLATFORM),
        description=DESCRIPTIONS[type_],
        duration_seconds=5 if type_ is EventType.FREEZE else -1,
        resources=tuple(
            Resource(machine=MachineId(f"id of {name}"), name=MachineName(name)) for name in names
        ),
        announced_at=NOT_BEFORE,
        not_before=NOT_BEFORE,
    )


def cases() -> Iterator[tuple[str, GroupDocument]]:
    """Name every kind of document once."""
    yield "empty", document(group(incarnation=1), ())
    for type_ in EventType:
        # A recommendation never starts.
        for status in (EventStatus.SCHEDULED,) if type_ in HINTS else EventStatus:
            yield f"{type_}-{status}".lower(), document(group(), (event(type_, status),))
    every_type = [event(type_, number=number) for number, type_ in enumerate(EventType, start=1)]
    yield "one-of-each", document(group(), reversed(every_type))
    role = event(EventType.FREEZE, names=("FrontEnd_IN_1", "FrontEnd_IN_0"))
    yield "cloud-service", document(group(kind=GroupKind.CLOUD_SERVICE), (role,))


def files() -> Iterator[tuple[str, bytes]]:
    """Write every document in every version."""
    for version in VERSIONS:
        for name, shown in cases():
            yield f"{version.name}-{name}.json", write_document(shown, version)


if __name__ == "__main__":
    for file_name, content in files():
        (GOLDEN / file_name).write_bytes(content)
