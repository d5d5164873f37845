"""All facts about the actions of orders and the work that they do."""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.core.basic_types import Action, EventType, MachineState, Source, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFacts:
    """The effect of work on a machine, and its event."""

    event: EventType | None  # None: it is never announced
    during: MachineState | None = None  # None: the state does not change until the work is done
    after: MachineState = MachineState.RUNNING
    moves: bool = False  # the machine is on another host afterwards
    unloads: bool = False  # the machine is on no host afterwards
    maintains: bool = False  # maintenance of a host may do it
    hint: bool = False  # only announced; the machine is not touched


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFacts:
    """The work of an action, and its event."""

    about: str = ""  # help text of an order on a machine
    work: Work | None = None  # None: no work on machines, or the order names it
    source: Source = Source.PLATFORM
    description: str = ""  # as in Azure's responses: some clients tell causes apart by it
    can_wait: bool = False  # not armed while another update domain of the group is armed
    only_if_enabled: bool = False  # announced only to guests that listen
    spot_only: bool = False
    leaves: bool = False  # the machine is gone afterwards, so its other events are withdrawn


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
    # The order names its work: a live move is a Freeze.
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
