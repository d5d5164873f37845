"""The actions that can be ordered and the work they do: all that is known of each, in one place."""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.core.basic_types import Action, EventType, MachineState, Source, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFacts:
    """What work does to a machine, and as what it is announced."""

    event: EventType | None  # None: it is never announced
    during: MachineState | None = None  # None: the machine stays as it is until the work is done
    after: MachineState = MachineState.RUNNING
    moves: bool = False  # the machine is on another host afterwards
    unloads: bool = False  # it is on no host afterwards
    maintains: bool = False  # maintenance of a host may do it
    hint: bool = False  # guests are told, and nothing is done to the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFacts:
    """What an action does, and how guests learn of it."""

    about: str = ""  # of an order on a machine, for people who choose one
    work: Work | None = None  # None: nothing is done to machines, or the order says what
    source: Source = Source.PLATFORM
    description: str = ""  # a text of real responses: some clients tell causes apart by it
    can_wait: bool = False  # not even announced while the group has another update domain listed
    only_if_enabled: bool = False  # makes an event only for guests that listen
    spot_only: bool = False
    leaves: bool = False  # the machine is gone afterwards: nothing else is worth announcing for it


WORKS: Mapping[Work, WorkFacts] = {
    Work.FREEZE: WorkFacts(event=EventType.FREEZE, during=MachineState.FROZEN, maintains=True),
    Work.REBOOT: WorkFacts(event=EventType.REBOOT, during=MachineState.RESTARTING, maintains=True),
    Work.REDEPLOY: WorkFacts(
        event=EventType.REDEPLOY, during=MachineState.MOVING, moves=True, maintains=True
    ),
    Work.EVICT: WorkFacts(event=EventType.PREEMPT, after=MachineState.STOPPED, unloads=True),
    Work.TERMINATE: WorkFacts(event=EventType.TERMINATE, after=MachineState.STOPPED),
    Work.START: WorkFacts(event=None, moves=True),
    Work.RECOMMEND: WorkFacts(event=EventType.SPOT_REBALANCE_RECOMMENDATION, hint=True),
    Work.RECOVER: WorkFacts(event=EventType.REBOOT, during=MachineState.RESTARTING, moves=True),
    Work.HOST: WorkFacts(event=None),
}

ON_MACHINES: Mapping[Action, ActionFacts] = {
    Action.RESTART: ActionFacts(
        about="Restart a machine",
        work=Work.REBOOT,
        source=Source.USER,
        description="Virtual machine is going to be restarted as requested by authorized user.",
        only_if_enabled=True,
    ),
    Action.REDEPLOY: ActionFacts(
        about="Move a machine to another host",
        work=Work.REDEPLOY,
        source=Source.USER,
        description="Virtual machine is going to be redeployed as requested by authorized user.",
        only_if_enabled=True,
    ),
    # What is done, the order says: a live move is a Freeze.
    Action.MOVE: ActionFacts(
        about="Move a machine with notice, to a host of your choice or while it runs",
        work=Work.REDEPLOY,
        description="Host server is undergoing maintenance.",
        can_wait=True,
    ),
    Action.FREEZE: ActionFacts(
        about="Pause a machine for seconds",
        work=Work.FREEZE,
        description="Virtual machine is being paused because of a memory-preserving Live Migration "
        "operation.",
    ),
    Action.EVICT: ActionFacts(
        about="Evict a spot machine; `start` brings it back", work=Work.EVICT, spot_only=True, leaves=True
    ),
    Action.TERMINATE: ActionFacts(
        about="Delete a machine, after notice", work=Work.TERMINATE, source=Source.USER, leaves=True
    ),
    Action.START: ActionFacts(about="Start a machine that was evicted", work=Work.START, source=Source.USER),
    Action.RECOMMEND_REBALANCE: ActionFacts(
        about="Tell a spot machine that it may be evicted soon; nothing is done to it",
        work=Work.RECOMMEND,
        description="Virtual machine is at an elevated risk of eviction.",
        spot_only=True,
    ),
}

ON_HOSTS: Mapping[Action, ActionFacts] = {
    Action.MAINTENANCE: ActionFacts(description="Host server is undergoing maintenance.", can_wait=True),
    Action.SERVICE: ActionFacts(
        work=Work.HOST, description="Host server is undergoing maintenance.", can_wait=True
    ),
    Action.DEGRADE: ActionFacts(
        work=Work.REDEPLOY, description="Host server is undergoing an emergency repair.", can_wait=True
    ),
    Action.FAIL: ActionFacts(work=Work.RECOVER, description="Virtual machine has encountered a failure."),
    Action.RESTORE: ActionFacts(),
    Action.CORDON: ActionFacts(),
    Action.UNCORDON: ActionFacts(),
}

ACTIONS: Mapping[Action, ActionFacts] = {**ON_MACHINES, **ON_HOSTS}

MAINTENANCE_WORK = tuple(work for work, facts in WORKS.items() if facts.maintains)
