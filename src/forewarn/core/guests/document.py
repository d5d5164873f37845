"""The document: all events of a group, in the order and form in which its guests see them."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from forewarn.core.basic_types import GroupKind, GroupName, MachineName
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group

# Enough that no two groups of a fleet share a tag by chance, and short enough to send with every answer.
TAG_LENGTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All listed events of a group, with the incarnation that names this state of them."""

    incarnation: int
    kind: GroupKind
    born: int
    events: tuple[Event, ...]


def document(group: Group, events: Iterable[Event]) -> Document:
    """List the events that a group's guests see, oldest first."""
    listed = sorted((event for event in events if event.listed), key=lambda event: event.number)
    return Document(incarnation=group.incarnation, kind=group.kind, born=group.born, events=tuple(listed))


def resource_names(event: Event) -> tuple[MachineName, ...]:
    """Name the machines of an event, by name without regard to case."""
    names = (resource.name for resource in event.resources)
    return tuple(sorted(names, key=lambda name: (name.casefold(), name)))


def tag(group: GroupName, *, born: int, lineage: str) -> str:
    """Make what tells two documents of equal incarnation apart.

    It differs between groups, because a machine may change its group, also between one that was removed
    and its namesake; and between a store and its copy restored from a backup, because both may count to
    the same incarnation with other events.
    """
    return sha256(f"{lineage}\0{group}\0{born}".encode(errors="surrogatepass")).hexdigest()[:TAG_LENGTH]


def entity_tag(incarnation: int, group_tag: str) -> str:
    """Name one state of a group's document, as an ETag without its quotes."""
    return f"{incarnation}-{group_tag}"
