"""Basic types: ids, and the choices that things are made of."""

from enum import StrEnum
from typing import Final, Literal, NewType, TypeAlias

ProjectName = NewType("ProjectName", str)
GroupName = NewType("GroupName", str)
HostName = NewType("HostName", str)
MachineName = NewType("MachineName", str)
MachineId = NewType("MachineId", str)  # the machine's vm_id: a lower-case GUID, made once and kept
OrderId = NewType("OrderId", str)  # an upper-case GUID
EventId = NewType("EventId", str)  # an upper-case GUID

DEFAULT_PROJECT = ProjectName("default")
# Who speaks for a project, group, host or machine; else the driver that it was imported by.
DECLARED: Final = "declared"  # a whole fleet, as a file declares it
PUT: Final = "put"  # a person, one thing at a time
HUMAN_SOURCES = frozenset({DECLARED, PUT})
# By whom what the service does by itself is said to be done.
FOREWARN = "forewarn"
# How a record ends of what was done to a machine outside forewarn, as an import found it.
OUTSIDE_FOREWARN: Final = "by other hands"
# What precedes the id of a standalone machine in the name of its own group; no declared name has a slash.
STANDALONE = "standalone/"


class NameKind(StrEnum):
    """What a name is the name of."""

    MACHINE = "machine"
    GROUP = "group"
    HOST = "host"
    PROJECT = "project"


class GroupKind(StrEnum):
    """What kind of group events are delivered to."""

    CLOUD_SERVICE = "cloud-service"
    AVAILABILITY_SET = "availability-set"
    SCALE_SET = "scale-set"
    STANDALONE = "standalone"  # one machine that is its own group; never listed among groups


class HostState(StrEnum):
    """Whether a host may carry machines."""

    OK = "ok"
    CORDONED = "cordoned"
    DEGRADED = "degraded"
    FAILED = "failed"
    LOST = "lost"  # it did not come back from work on it in time, and nobody knows what became of it


class MachineState(StrEnum):
    """What a machine is going through."""

    RUNNING = "running"
    FROZEN = "frozen"
    RESTARTING = "restarting"
    MOVING = "moving"
    STOPPED = "stopped"


class Priority(StrEnum):
    """Whether a machine may be evicted."""

    REGULAR = "regular"
    SPOT = "spot"


class Mobility(StrEnum):
    """How a machine can leave its host when that is evacuated."""

    LIVE = "live"  # a live migration: it freezes for a moment; a redeploy if that fails
    LIVE_ONLY = "live-only"  # a live migration, and never a redeploy instead
    COLD = "cold"  # it is redeployed on another host
    NONE = "none"  # it stays, and restarts with its host


class Action(StrEnum):
    """What an order asks for, as its caller names it."""

    RESTART = "restart"
    REDEPLOY = "redeploy"
    MOVE = "move"
    FREEZE = "freeze"
    EVICT = "evict"
    TERMINATE = "terminate"
    START = "start"
    RECOMMEND_REBALANCE = "recommend-rebalance"
    MAINTENANCE = "maintenance"
    SERVICE = "service"
    DEGRADE = "degrade"
    FAIL = "fail"
    RESTORE = "restore"
    CORDON = "cordon"
    UNCORDON = "uncordon"


class Work(StrEnum):
    """What one step does to one machine."""

    FREEZE = "freeze"
    REBOOT = "reboot"
    REDEPLOY = "redeploy"
    EVICT = "evict"
    TERMINATE = "terminate"
    START = "start"
    RECOMMEND = "recommend"  # nothing: guests are told, and no more
    RECOVER = "recover"  # bring a machine of a failed host back on another one
    HOST = "host"  # work on the host itself: what it does to machines, their own steps say

    @property
    def touches_machines(self) -> bool:
        """Whether something is done to machines, by whoever does the work."""
        return self is not Work.RECOMMEND


class EventType(StrEnum):
    """What an event says will happen to a machine."""

    FREEZE = "Freeze"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"
    SPOT_REBALANCE_RECOMMENDATION = "SpotRebalanceRecommendation"


# Types that only recommend something: nothing is started, nothing waits for it, and no rule counts it.
HINTS = frozenset({EventType.SPOT_REBALANCE_RECOMMENDATION})


class EventStatus(StrEnum):
    """How far a listed event is; one that is over is not listed."""

    SCHEDULED = "Scheduled"
    STARTED = "Started"


class Source(StrEnum):
    """Who wanted the event."""

    PLATFORM = "Platform"
    USER = "User"


class OrderState(StrEnum):
    """How far an order is."""

    QUEUED = "queued"
    ANNOUNCED = "announced"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StageState(StrEnum):
    """How far a stage is."""

    QUEUED = "queued"
    ANNOUNCED = "announced"
    STARTED = "started"
    DONE = "done"


class StageKind(StrEnum):
    """What a stage is for."""

    MACHINES = "machines"  # every machine is treated
    EVACUATE = "evacuate"  # machines leave the host, a few at a time
    HOST = "host"  # the host itself is worked on, and what is still on it restarts with it
    RETURN = "return"  # those that left come back


class ServiceMode(StrEnum):
    """What becomes of the machines of a host that is worked on."""

    EVACUATE = "evacuate"  # those that can leave do so first
    IN_PLACE = "in-place"  # all restart with it


class RolloutAction(StrEnum):
    """What a rollout does to its hosts, as its caller names it."""

    FREEZE = "freeze"
    REBOOT = "reboot"
    REDEPLOY = "redeploy"
    SERVICE = "service"  # the hosts themselves are worked on

    @property
    def work(self) -> Work:
        """What its orders do."""
        return Work.HOST if self is RolloutAction.SERVICE else Work(self.value)


class HostTask(StrEnum):
    """What one step does to a host."""

    CORDON = "cordon"
    BEFORE = "before"
    WORK = "work"
    AFTER = "after"
    UNCORDON = "uncordon"
    HEALTH = "health"
    FENCE = "fence"


class StepState(StrEnum):
    """How far one machine's share of a stage is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    MOOT = "moot"  # the machine left before its turn, or the work was abandoned


class ApprovedBy(StrEnum):
    """What kind of party gave an approval."""

    GUEST = "guest"
    PERSON = "person"
    POLICY = "policy"


class ApprovalRule(StrEnum):
    """Whose word a group's events need to start early."""

    ANY = "any"  # any machine of the group, as on Azure
    ALL = "all"  # every machine named in the event
    LEADER = "leader"  # the first machine named in the event


class Kind(StrEnum):
    """What a record says has happened."""

    ORDER_PLACED = "order-placed"
    ORDER_DONE = "order-done"
    ORDER_FAILED = "order-failed"
    ORDER_CANCELLED = "order-cancelled"
    ORDER_RETRIED = "order-retried"
    ORDER_ABANDONING = "order-abandoning"  # steps of it still run
    ORDER_ABANDONED = "order-abandoned"
    EVENT_SCHEDULED = "event-scheduled"
    EVENT_APPROVED = "event-approved"
    EVENT_STARTED = "event-started"
    EVENT_FINISHED = "event-finished"
    EVENT_CANCELLED = "event-cancelled"
    EVENT_WITHDRAWN = "event-withdrawn"
    EVENT_LEFT = "event-left"  # a machine's name was taken out of an event
    EVENT_DEFERRED = "event-deferred"  # a guest asked for more time
    EVENT_POSTPONED = "event-postponed"  # its NotBefore moved: another update domain was armed
    PROMISE_BROKEN = "promise-broken"  # an operator's emergency shortened the notice
    HOLD_SET = "hold-set"
    HOLD_RELEASED = "hold-released"
    HOLD_REFUSED = "hold-refused"  # it was in memory, and could not be kept
    ROLLOUT_BEGUN = "rollout-begun"
    ROLLOUT_PAUSED = "rollout-paused"
    ROLLOUT_RESUMED = "rollout-resumed"
    ROLLOUT_ABORTED = "rollout-aborted"
    ROLLOUT_DONE = "rollout-done"
    REHEARSAL_BEGUN = "rehearsal-begun"
    REHEARSAL_FAULTS = "rehearsal-faults"  # that guests meet from then on
    REHEARSAL_ENDED = "rehearsal-ended"
    STEP_BEGUN = "step-begun"
    STEP_UNKNOWN = "step-unknown"  # its driver cannot tell how it is doing
    STEP_DONE = "step-done"
    STEP_FAILED = "step-failed"
    MACHINE_ADDED = "machine-added"
    MACHINE_CHANGED = "machine-changed"
    MACHINE_MOVED = "machine-moved"
    MACHINE_REMOVED = "machine-removed"
    GROUP_ADDED = "group-added"
    GROUP_CHANGED = "group-changed"
    GROUP_REMOVED = "group-removed"
    GROUP_ENABLED = "group-enabled"
    GROUP_DISABLED = "group-disabled"
    HOST_ADDED = "host-added"
    HOST_CHANGED = "host-changed"
    HOST_REMOVED = "host-removed"
    HOST_LOST = "host-lost"  # it did not come back from the work on it in time
    HOST_UNREACHABLE = "host-unreachable"  # its driver cannot reach it
    HOST_REACHABLE = "host-reachable"  # its driver reaches it again
    HOST_FENCED = "host-fenced"  # somebody vouches that it touches its machines no more
    PROJECT_ADDED = "project-added"
    PROJECT_CHANGED = "project-changed"
    PROJECT_REMOVED = "project-removed"
    FLEET_APPLIED = "fleet-applied"
    UNANNOUNCED_IMPACT = "unannounced-impact"  # other hands were at a machine, and no event told of it
    CLOCK_JUMPED = "clock-jumped"
    SERVICE_AWAY = "service-away"  # it was down or frozen, and guests could not be heard
    CLOCK_ADVANCED = "clock-advanced"  # a manual clock was turned
    HISTORY_PRUNED = "history-pruned"  # old records have gone
    WEBHOOK_ADDED = "webhook-added"
    WEBHOOK_REMOVED = "webhook-removed"
    WEBHOOK_FAILING = "webhook-failing"
    WEBHOOK_RECOVERED = "webhook-recovered"
    IMPOSTOR_REFUSED = "impostor-refused"  # somebody used a machine's address from another MAC
    NOTICE_LATE = "notice-late"  # machines that could not see an event in time
    NOTICE_NEVER = "notice-never"  # machines that were not sent an event as long as it was listed
    TOKEN_CREATED = "token-created"  # noqa: S105 - no password
    TOKEN_REVOKED = "token-revoked"  # noqa: S105 - no password


# What maintenance may do to machines, for those who must have it spelled out; `core/catalogue.py` decides.
MaintenanceWord: TypeAlias = Literal["freeze", "reboot", "redeploy"]
RolloutWord: TypeAlias = Literal["freeze", "reboot", "redeploy", "service"]  # as RolloutAction

# The drivers that are always there; which others are is known to `forewarn.drivers`.
SIMULATED: Final = "simulated"
EXTERNAL: Final = "external"  # work is done outside forewarn, and reported when it is done
HOOK: Final = (
    "hook"  # a command of the settings, for steps on hosts themselves; no host names it as its driver
)
# They are asked where the engine runs, and what they say of time is service time.
SYNCHRONOUS_DRIVERS: frozenset[str] = frozenset({SIMULATED, EXTERNAL})
