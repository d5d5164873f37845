"""The document: all events of a group in the order of Azure's contract."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from forewarn.core.basic_types import GroupKind, GroupName, MachineName
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group

# Long enough that groups of a fleet share no tag by chance, and short enough to send with every answer.
TAG_LENGTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDocument:
    """All listed events of a group, with its incarnation."""

    incarnation: int
    kind: GroupKind
    born: int
    events: tuple[Event, ...]


def document(group: Group, events: Iterable[Event]) -> GroupDocument:
    """Return the document of a group, with its oldest event first."""
    listed = sorted((event for event in events if event.listed), key=lambda event: event.number)
    return GroupDocument(
        incarnation=group.incarnation, kind=group.kind, born=group.born, events=tuple(listed)
    )


def resource_names(event: Event) -> tuple[MachineName, ...]:
    """Return the names of an event's machines, sorted without regard to case."""
    names = (resource.name for resource in event.resources)
    return tuple(sorted(names, key=lambda name: (name.casefold(), name)))


def tag(group: GroupName, *, born: int, lineage: str) -> str:
    """Return a tag that tells documents of equal incarnation apart.

    The tag differs between groups, because a machine may change its group. It differs between a removed group
    and a new one of the same name. It also differs between a store and its restored backup, because both may
    reach the same incarnation with other events.
    """
    return sha256(f"{lineage}\0{group}\0{born}".encode(errors="surrogatepass")).hexdigest()[:TAG_LENGTH]


def entity_tag(incarnation: int, group_tag: str) -> str:
    """Return the ETag of a document, without its quotes."""
    return f"{incarnation}-{group_tag}"
