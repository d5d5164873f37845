"""The lists of the operator API that each record changes, so that a client knows what to read again."""

from collections.abc import Mapping
from enum import StrEnum

from forewarn.core.basic_types import Kind


class Topic(StrEnum):
    """A list of the operator API, or a single object that many views show."""

    MACHINES = "machines"
    GROUPS = "groups"  # the incarnation of a group belongs to its events
    HOSTS = "hosts"
    PROJECTS = "projects"
    EVENTS = "events"
    ORDERS = "orders"
    ROLLOUTS = "rollouts"
    HOLDS = "holds"
    PROMISES = "promises"
    REHEARSALS = "rehearsals"
    WEBHOOKS = "webhooks"
    TOKENS = "tokens"
    CLOCK = "clock"


# A waiting order or rollout shows a reason, which may name any other order or event.
_REASONS = frozenset({Topic.ORDERS, Topic.ROLLOUTS})
_EVENT = _REASONS | {Topic.EVENTS}
_JUDGED = _EVENT | {Topic.PROMISES}
# Work moves machines or reserves room for them on a host, and a host shows how many machines it carries.
_WORK = _REASONS | {Topic.MACHINES, Topic.HOSTS}
_MOVES = _WORK | {Topic.EVENTS}
_GROUP = _REASONS | {Topic.GROUPS}
_LISTENING = frozenset({Topic.GROUPS, Topic.MACHINES})
_PROJECT = _REASONS | {Topic.PROJECTS}

# The first word of a kind names its subject.
_BY_SUBJECT: Mapping[str, frozenset[Topic]] = {
    "order": _WORK,
    "event": _EVENT,
    "promise": _JUDGED,
    "notice": _JUDGED,
    "unannounced": frozenset({Topic.PROMISES}),
    "hold": _REASONS | {Topic.HOLDS},
    "rollout": _REASONS,
    "rehearsal": frozenset({Topic.REHEARSALS}),
    "step": _WORK,
    "machine": _MOVES,
    "group": _GROUP,
    "host": _REASONS | {Topic.HOSTS},
    "project": _PROJECT,
    "fleet": _MOVES | _GROUP | _PROJECT,
    "clock": _EVENT | {Topic.CLOCK},
    "service": _EVENT,
    "history": frozenset(),
    "impostor": frozenset(),
    "webhook": frozenset({Topic.WEBHOOKS}),
    "token": frozenset({Topic.TOKENS}),
}
_EXCEPTIONS: Mapping[Kind, frozenset[Topic]] = {
    Kind.ORDER_PLACED: _REASONS,
    Kind.ORDER_RETRIED: _REASONS,
    Kind.ORDER_ABANDONING: _REASONS,
    Kind.EVENT_SCHEDULED: _MOVES,
    Kind.EVENT_WITHDRAWN: _MOVES,
    Kind.EVENT_CANCELLED: _MOVES | _JUDGED,
    Kind.EVENT_FINISHED: _JUDGED,
    Kind.EVENT_LEFT: _JUDGED,
    Kind.ROLLOUT_ABORTED: _WORK,
    Kind.GROUP_ENABLED: _LISTENING,
    Kind.GROUP_DISABLED: _LISTENING,
    Kind.HOST_FENCED: _WORK,
}

# Each in the order of `Topic`.
TOPICS: Mapping[str, tuple[Topic, ...]] = {
    kind: tuple(topic for topic in Topic if topic in topics)
    for kind in Kind
    for topics in (_EXCEPTIONS.get(kind) or _BY_SUBJECT[kind.partition("-")[0]],)
}


def topics_of(kind: str) -> tuple[Topic, ...]:
    """Return the topics of a record; all of them if another version of forewarn wrote it."""
    return TOPICS.get(kind, tuple(Topic))
