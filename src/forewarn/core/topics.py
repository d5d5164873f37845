"""Which lists of the operator API a record concerns, so that its reader knows what to read again."""

from collections.abc import Mapping
from enum import StrEnum

from forewarn.core.basic_types import Kind


class Topic(StrEnum):
    """A list of the operator API, or a single thing that many views show."""

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


# Orders and rollouts give reasons for what waits; a reason may name any other order or event.
_REASONS = frozenset({Topic.ORDERS, Topic.ROLLOUTS})
_EVENT = _REASONS | {Topic.EVENTS}
_JUDGED = _EVENT | {Topic.PROMISES}
# Work moves machines or keeps room for them on a host, and hosts show how many they carry.
_WORK = _REASONS | {Topic.MACHINES, Topic.HOSTS}
_MOVES = _WORK | {Topic.EVENTS}
_GROUP = _REASONS | {Topic.GROUPS}
_LISTENING = frozenset({Topic.GROUPS, Topic.MACHINES})
_HOST = _REASONS | {Topic.HOSTS}
_PROJECT = _REASONS | {Topic.PROJECTS}
_HOLD = _REASONS | {Topic.HOLDS}
_CLOCK = _EVENT | {Topic.CLOCK}
_REHEARSAL = frozenset({Topic.REHEARSALS})
_WEBHOOK = frozenset({Topic.WEBHOOKS})
_TOKEN = frozenset({Topic.TOKENS})
_NOTHING = frozenset[Topic]()

TOPICS: Mapping[Kind, frozenset[Topic]] = {
    Kind.ORDER_PLACED: _REASONS,
    Kind.ORDER_DONE: _WORK,
    Kind.ORDER_FAILED: _WORK,
    Kind.ORDER_CANCELLED: _WORK,
    Kind.ORDER_RETRIED: _REASONS,
    Kind.ORDER_ABANDONING: _REASONS,
    Kind.ORDER_ABANDONED: _WORK,
    Kind.EVENT_SCHEDULED: _MOVES,
    Kind.EVENT_APPROVED: _EVENT,
    Kind.EVENT_STARTED: _EVENT,
    Kind.EVENT_FINISHED: _JUDGED,
    Kind.EVENT_CANCELLED: _MOVES | _JUDGED,
    Kind.EVENT_WITHDRAWN: _MOVES,
    Kind.EVENT_LEFT: _JUDGED,
    Kind.EVENT_DEFERRED: _EVENT,
    Kind.EVENT_POSTPONED: _EVENT,
    Kind.PROMISE_BROKEN: _JUDGED,
    Kind.UNANNOUNCED_IMPACT: frozenset({Topic.PROMISES}),
    Kind.NOTICE_LATE: _JUDGED,
    Kind.NOTICE_NEVER: _JUDGED,
    Kind.HOLD_SET: _HOLD,
    Kind.HOLD_RELEASED: _HOLD,
    Kind.HOLD_REFUSED: _HOLD,
    Kind.ROLLOUT_BEGUN: _REASONS,
    Kind.ROLLOUT_PAUSED: _REASONS,
    Kind.ROLLOUT_RESUMED: _REASONS,
    Kind.ROLLOUT_ABORTED: _WORK,
    Kind.ROLLOUT_DONE: _REASONS,
    Kind.REHEARSAL_BEGUN: _REHEARSAL,
    Kind.REHEARSAL_FAULTS: _REHEARSAL,
    Kind.REHEARSAL_ENDED: _REHEARSAL,
    Kind.STEP_BEGUN: _WORK,
    Kind.STEP_UNKNOWN: _WORK,
    Kind.STEP_DONE: _WORK,
    Kind.STEP_FAILED: _WORK,
    Kind.MACHINE_ADDED: _MOVES,
    Kind.MACHINE_CHANGED: _MOVES,
    Kind.MACHINE_MOVED: _MOVES,
    Kind.MACHINE_REMOVED: _MOVES,
    Kind.GROUP_ADDED: _GROUP,
    Kind.GROUP_CHANGED: _GROUP,
    Kind.GROUP_REMOVED: _GROUP,
    Kind.GROUP_ENABLED: _LISTENING,
    Kind.GROUP_DISABLED: _LISTENING,
    Kind.HOST_ADDED: _HOST,
    Kind.HOST_CHANGED: _HOST,
    Kind.HOST_REMOVED: _HOST,
    Kind.HOST_LOST: _HOST,
    Kind.HOST_UNREACHABLE: _HOST,
    Kind.HOST_REACHABLE: _HOST,
    Kind.HOST_FENCED: _WORK,
    Kind.PROJECT_ADDED: _PROJECT,
    Kind.PROJECT_CHANGED: _PROJECT,
    Kind.PROJECT_REMOVED: _PROJECT,
    Kind.FLEET_APPLIED: _MOVES | _GROUP | _PROJECT,
    Kind.CLOCK_JUMPED: _CLOCK,
    Kind.CLOCK_ADVANCED: _CLOCK,
    Kind.SERVICE_AWAY: _EVENT,
    Kind.HISTORY_PRUNED: _NOTHING,
    Kind.IMPOSTOR_REFUSED: _NOTHING,
    Kind.WEBHOOK_ADDED: _WEBHOOK,
    Kind.WEBHOOK_REMOVED: _WEBHOOK,
    Kind.WEBHOOK_FAILING: _WEBHOOK,
    Kind.WEBHOOK_RECOVERED: _WEBHOOK,
    Kind.TOKEN_CREATED: _TOKEN,
    Kind.TOKEN_REVOKED: _TOKEN,
}

_IN_ORDER: Mapping[str, tuple[Topic, ...]] = {
    kind: tuple(topic for topic in Topic if topic in topics) for kind, topics in TOPICS.items()
}


def topics_of(kind: str) -> tuple[Topic, ...]:
    """Return the topics of a record in one order: all of them if another version has written it."""
    return _IN_ORDER.get(kind, tuple(Topic))
