"""Basic types: ids, and the enums that the other modules share."""

from enum import StrEnum
from typing import Final, Literal, NewType, TypeAlias

ProjectName = NewType("ProjectName", str)
GroupName = NewType("GroupName", str)
HostName = NewType("HostName", str)
MachineName = NewType("MachineName", str)
MachineId = NewType("MachineId", str)  # the machine's vm_id: a lower-case GUID that never changes
OrderId = NewType("OrderId", str)  # an upper-case GUID
EventId = NewType("EventId", str)  # an upper-case GUID

DEFAULT_PROJECT = ProjectName("default")
# The source of a project, group, host or machine: one of these, or the driver that imported it.
DECLARED: Final = "declared"  # a fleet file
PUT: Final = "put"  # a person, through the API or a command
HUMAN_SOURCES = frozenset({DECLARED, PUT})
# The author of records about work that the server does on its own.
FOREWARN = "forewarn"
# The end of a record's reason if an import found that a machine was changed outside forewarn.
OUTSIDE_FOREWARN: Final = "outside forewarn"
# The group of a standalone machine is named with this prefix and its id. Declared names have no slash.
STANDALONE = "standalone/"


class NameKind(StrEnum):
    """The kind of thing that a name belongs to."""

    MACHINE = "machine"
    GROUP = "group"
    HOST = "host"
    PROJECT = "project"


class GroupKind(StrEnum):
    """The kind of group that receives events."""

    CLOUD_SERVICE = "cloud-service"
    AVAILABILITY_SET = "availability-set"
    SCALE_SET = "scale-set"
    STANDALONE = "standalone"  # the group of one standalone machine; lists of groups omit it


class HostState(StrEnum):
    """The state of a host; it decides whether machines may run there."""

    OK = "ok"
    CORDONED = "cordoned"
    DEGRADED = "degraded"
    FAILED = "failed"
    LOST = "lost"  # it did not come back from work on it in time, and its state is unknown


class MachineState(StrEnum):
    """The state of a machine."""

    RUNNING = "running"
    FROZEN = "frozen"
    RESTARTING = "restarting"
    MOVING = "moving"
    STOPPED = "stopped"


class Priority(StrEnum):
    """Whether the platform may evict a machine."""

    REGULAR = "regular"
    SPOT = "spot"


class Mobility(StrEnum):
    """How a machine can leave its host during an evacuation."""

    LIVE = "live"  # a live migration (a short freeze); a redeploy if that fails
    LIVE_ONLY = "live-only"  # a live migration, never a redeploy
    COLD = "cold"  # a redeploy on another host
    NONE = "none"  # it stays and restarts with its host


class Action(StrEnum):
    """The action of an order, as the caller names it."""

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
    """The effect of one step on one machine."""

    FREEZE = "freeze"
    REBOOT = "reboot"
    REDEPLOY = "redeploy"
    EVICT = "evict"
    TERMINATE = "terminate"
    START = "start"
    RECOMMEND = "recommend"  # announce a recommendation to guests; the machine is not touched
    RECOVER = "recover"  # start a machine of a failed host on another host
    HOST = "host"  # work on the host itself; the machines have steps of their own

    @property
    def touches_machines(self) -> bool:
        """Whether the work changes machines."""
        return self is not Work.RECOMMEND


class EventType(StrEnum):
    """The impact that an event announces for a machine."""

    FREEZE = "Freeze"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"
    SPOT_REBALANCE_RECOMMENDATION = "SpotRebalanceRecommendation"


# Types that only recommend: they start nothing, nothing waits for them, and the rules ignore them.
HINTS = frozenset({EventType.SPOT_REBALANCE_RECOMMENDATION})


class EventStatus(StrEnum):
    """The status of a listed event; a finished event is not listed."""

    SCHEDULED = "Scheduled"
    STARTED = "Started"


class Source(StrEnum):
    """The party that requested an event."""

    PLATFORM = "Platform"
    USER = "User"


class OrderState(StrEnum):
    """The state of an order."""

    QUEUED = "queued"
    ANNOUNCED = "announced"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StageState(StrEnum):
    """The state of a stage."""

    QUEUED = "queued"
    ANNOUNCED = "announced"
    STARTED = "started"
    DONE = "done"


class StageKind(StrEnum):
    """The purpose of a stage."""

    MACHINES = "machines"  # work on every machine
    EVACUATE = "evacuate"  # machines leave the host, a few at a time
    HOST = "host"  # work on the host itself; the machines still on it restart with it
    RETURN = "return"  # the machines that left come back


class ServiceMode(StrEnum):
    """How work on a host treats its machines."""

    EVACUATE = "evacuate"  # the machines that can leave do so first
    IN_PLACE = "in-place"  # all machines restart with the host


class RolloutAction(StrEnum):
    """The action of a rollout on its hosts, as the caller names it."""

    FREEZE = "freeze"
    REBOOT = "reboot"
    REDEPLOY = "redeploy"
    SERVICE = "service"  # work on the hosts themselves

    @property
    def work(self) -> Work:
        """The work of the rollout's orders."""
        return Work.HOST if self is RolloutAction.SERVICE else Work(self.value)


class HostTask(StrEnum):
    """The effect of one step on a host."""

    CORDON = "cordon"
    BEFORE = "before"
    WORK = "work"
    AFTER = "after"
    UNCORDON = "uncordon"
    HEALTH = "health"
    FENCE = "fence"


class StepState(StrEnum):
    """The state of one machine's step in a stage."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    MOOT = "moot"  # the machine left before the step began, or the order was abandoned


class ApprovedBy(StrEnum):
    """The kind of party that gave an approval."""

    GUEST = "guest"
    PERSON = "person"
    POLICY = "policy"


class ApprovalRule(StrEnum):
    """The machines of a group that must approve an event before it may start early."""

    ANY = "any"  # any machine of the group, as on Azure
    ALL = "all"  # every machine named in the event
    LEADER = "leader"  # the first machine named in the event


class Kind(StrEnum):
    """The kind of a history record."""

    ORDER_PLACED = "order-placed"
    ORDER_DONE = "order-done"
    ORDER_FAILED = "order-failed"
    ORDER_CANCELLED = "order-cancelled"
    ORDER_RETRIED = "order-retried"
    ORDER_ABANDONING = "order-abandoning"  # abandoned, but some steps still run
    ORDER_ABANDONED = "order-abandoned"
    EVENT_SCHEDULED = "event-scheduled"
    EVENT_APPROVED = "event-approved"
    EVENT_STARTED = "event-started"
    EVENT_FINISHED = "event-finished"
    EVENT_CANCELLED = "event-cancelled"
    EVENT_WITHDRAWN = "event-withdrawn"
    EVENT_LEFT = "event-left"  # a machine was removed from an event
    EVENT_DEFERRED = "event-deferred"  # a guest asked for more time
    EVENT_POSTPONED = "event-postponed"  # NotBefore moved because another update domain was armed
    PROMISE_BROKEN = "promise-broken"  # an operator's emergency shortened the notice
    HOLD_SET = "hold-set"
    HOLD_RELEASED = "hold-released"
    HOLD_REFUSED = "hold-refused"  # it was in memory and could not be saved
    ROLLOUT_BEGUN = "rollout-begun"
    ROLLOUT_PAUSED = "rollout-paused"
    ROLLOUT_RESUMED = "rollout-resumed"
    ROLLOUT_ABORTED = "rollout-aborted"
    ROLLOUT_DONE = "rollout-done"
    REHEARSAL_BEGUN = "rehearsal-begun"
    REHEARSAL_FAULTS = "rehearsal-faults"  # the faults that guests see changed
    REHEARSAL_ENDED = "rehearsal-ended"
    STEP_BEGUN = "step-begun"
    STEP_UNKNOWN = "step-unknown"  # its driver cannot tell its state
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
    HOST_REACHABLE = "host-reachable"  # its driver can reach it again
    HOST_FENCED = "host-fenced"  # a person confirmed that it is powered off or isolated
    PROJECT_ADDED = "project-added"
    PROJECT_CHANGED = "project-changed"
    PROJECT_REMOVED = "project-removed"
    FLEET_APPLIED = "fleet-applied"
    UNANNOUNCED_IMPACT = "unannounced-impact"  # a machine changed outside forewarn, without an event
    CLOCK_JUMPED = "clock-jumped"
    SERVICE_AWAY = "service-away"  # the server was down or frozen, and could not receive polls
    CLOCK_ADVANCED = "clock-advanced"  # a person advanced the manual clock
    HISTORY_PRUNED = "history-pruned"  # old records were deleted
    WEBHOOK_ADDED = "webhook-added"
    WEBHOOK_REMOVED = "webhook-removed"
    WEBHOOK_FAILING = "webhook-failing"
    WEBHOOK_RECOVERED = "webhook-recovered"
    IMPOSTOR_REFUSED = "impostor-refused"  # a request used a machine's address from another MAC
    NOTICE_LATE = "notice-late"  # machines that could not see an event in time
    NOTICE_NEVER = "notice-never"  # machines that never received an event while it was listed
    TOKEN_CREATED = "token-created"  # noqa: S105 - no password
    TOKEN_REVOKED = "token-revoked"  # noqa: S105 - no password


# The work of maintenance, for annotations that need literals; `core/catalogue.py` decides.
MaintenanceWord: TypeAlias = Literal["freeze", "reboot", "redeploy"]
RolloutWord: TypeAlias = Literal["freeze", "reboot", "redeploy", "service"]  # as RolloutAction

# The built-in drivers; `forewarn.drivers` knows the others.
SIMULATED: Final = "simulated"
EXTERNAL: Final = "external"  # another program does the work and reports it
# A command of the settings that carries out steps on hosts; no host names it as its driver.
HOOK: Final = "hook"
# The engine calls these drivers on its own thread, and they answer in service time.
SYNCHRONOUS_DRIVERS: frozenset[str] = frozenset({SIMULATED, EXTERNAL})
