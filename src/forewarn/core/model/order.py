"""Orders, their stages, and the steps of machines and hosts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from forewarn.core.basic_types import (
    EXTERNAL,
    SIMULATED,
    Action,
    GroupName,
    HostName,
    HostState,
    HostTask,
    MachineId,
    MachineName,
    OrderId,
    OrderState,
    ProjectName,
    ServiceMode,
    Source,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.model.constraints import Waiting


class AttemptId(NamedTuple):
    """The permanent name of one attempt of a step."""

    order: OrderId
    subject: str  # of the step: a machine's id, or `host/` and the task
    number: int  # the fencing token


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedHost:
    """A host that cannot take a machine, as its driver found before the move."""

    host: HostName
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Precheck:
    """A question to a driver before a move is announced: is the move possible?

    The driver agreed if it answered, is sure, and did not list the target among the hosts that refuse.
    """

    source: HostName | None
    target: HostName
    asked_at: datetime
    lost: int = 0  # how often the same question got no answer before
    answered_at: datetime | None = None
    unknown: str = ""  # why the driver cannot tell


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """The state of a step on a machine or a host."""

    state: StepState = StepState.WAITING
    attempt: int = 1
    begun_at: datetime | None = None
    look_at: datetime | None = None  # while it runs: when to ask the driver again, if known
    taken_up_at: datetime | None = None  # when an external program first reported that it works on the step
    unknown_at: datetime | None = None  # since when its driver cannot tell its state
    mark: str = ""  # how its driver recognises this attempt
    progress: float | None = None  # from 0 to 1, if its driver reports it
    too_late: bool = False  # its driver was asked to cancel it, and no longer can
    ended_at: datetime | None = None
    why: str = ""  # why it failed or became moot; while it runs, why its driver cannot tell its state


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(StepProgress):
    """The work of a stage on one machine; a driver carries it out."""

    machine: MachineId
    name: MachineName
    group: GroupName
    update_domain: int
    work: Work
    moves: bool = False  # the machine is on another host afterwards
    target: HostName | None = None  # the host after the move
    precheck: Precheck | None = None  # of a move that is to be announced
    refused: tuple[RefusedHost, ...] = ()  # hosts that cannot take its machine
    failures: int = 0  # since a person retried it, or it switched to another way to move
    failed_on: tuple[HostName, ...] = ()  # the targets of failed attempts: other hosts are preferred
    withdrawals: int = 0  # of a move: withdrawn announcements, as in an order
    lowered_from: Work | None = None  # the first way to move, which failed; it had another event
    again_at: datetime | None = None  # when to retry after a failure; no event announces it before
    impact: float | None = None  # how many seconds its machine was really away, if its driver reports it

    @property
    def subject(self) -> str:
        """The subject in the ids of its attempts."""
        return self.machine


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStep(StepProgress):
    """Work on the host itself, by a hook or a driver."""

    task: HostTask
    driver: str
    back_by: datetime | None = None  # of work: the host is lost if it is not done by then
    host_was: HostState | None = None  # the state of its host before it was lost

    @property
    def subject(self) -> str:
        """The subject in the ids of its attempts."""
        return f"host/{self.task}"

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"{self.task}"


def really_works_on_host(steps: Iterable[HostStep]) -> bool:
    """Whether the work on a host itself is real, even if the work on its machines is simulated."""
    return any(step.task is HostTask.WORK and step.driver != SIMULATED for step in steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of an order: machines of at most one update domain of any group.

    In an evacuation, it has machines of several domains, and each event starts by itself.
    """

    state: StageState
    steps: tuple[Step, ...]
    kind: StageKind = StageKind.MACHINES
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTerms:
    """The options that orders and rollouts share."""

    heartbeat: timedelta | None = None  # how long an external driver may be silent
    deadline: datetime | None = None  # afterwards windows do not apply, and guests cannot defer the work
    expected: timedelta | None = None  # how long a stage is expected to take, for windows
    whole: bool = False  # work on all machines of a host at once; refused if that breaks rule 4
    together: str = ""  # why that is done although it breaks rule 4; operators only
    mode: ServiceMode | None = None  # what happens to the machines of a host during work on it
    returning: bool = False  # machines that left a host come back afterwards
    host_driver: str | None = None  # of the work on hosts themselves; None: the driver of their machines


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTerms(WorkTerms):
    """The options of an order."""

    emergency: str = ""  # why the promised notice is broken; operators only
    notice: timedelta | None = None  # the notice of an emergency
    at_once: bool = False  # the owner of the machine does not wait for its guests
    paused: str = ""  # why its rollout is paused
    winding_down: str = ""  # why no more of it begins; work that has started ends
    rollout: str | None = None  # its rollout
    rehearsal: str = ""  # its scenario, which may only disturb guests that agreed to it
    abandoned_by: str = ""  # who abandoned it; steps of it may still run
    fenced: str = ""  # who confirmed that the failed host is powered off or isolated, and why
    despite_hold: bool = False  # an emergency that holds do not stop
    stopped_by: str = ""  # the hold that stopped it
    stopped_because: str = ""  # the reason of that hold
    driver_chooses: bool = False  # the driver chooses where its machines go
    homes: tuple[HostName, ...] = ()  # preferred targets: hosts interchangeable with this one
    to: HostName | None = None  # the requested target; None: any

    @property
    def undivided(self) -> bool:
        """Whether all machines of the host are announced, awaited and worked on together."""
        return self.whole or bool(self.together)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Requested work on a machine, or on a host and its machines."""

    id: OrderId
    number: int  # of the record that placed it; lists of orders are in this order
    action: Action
    work: Work | None  # None: no work on machines (cordon, restore, …)
    source: Source
    project: ProjectName | None  # None: an order on a host
    machine: MachineId | None
    machine_name: MachineName | None
    host: HostName | None
    by: str
    reason: str = ""
    driver: str = EXTERNAL
    terms: OrderTerms = OrderTerms()
    state: OrderState = OrderState.QUEUED
    stages: tuple[Stage, ...] = ()
    host_steps: tuple[HostStep, ...] = ()  # in the order of execution
    waiting: tuple[Waiting, ...] = ()
    created_at: datetime
    announced_at: datetime | None = None  # when guests first saw an event of it
    withdrawals: int = 0  # withdrawn announcements since it last started anything
    ended_at: datetime | None = None
    why: str = ""  # why it failed or was cancelled
    due_at: datetime | None = None  # when the engine must look at it next
    heard_at: datetime | None = None  # real time of the last heartbeat of an external driver

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.ended_at is None

    @property
    def stuck(self) -> bool:
        """Whether a person must act before it can continue."""
        return any(wait.stuck for wait in self.waiting)

    @property
    def given_up(self) -> str:
        """Why it was given up, for messages: by a person or a hold; empty if it was not."""
        terms = self.terms
        if terms.stopped_by:
            return f"stopped by {terms.abandoned_by}: {terms.stopped_because}"
        if self.state is OrderState.CANCELLED and terms.abandoned_by:
            return f"cancelled by {terms.abandoned_by}"
        return f"abandoned by {terms.abandoned_by}" if terms.abandoned_by else ""

    @property
    def is_fenced(self) -> bool:
        """Whether the failed host is isolated from its machines, by a fencing step or a person."""
        fences = (step for step in self.host_steps if step.task is HostTask.FENCE)
        return bool(self.terms.fenced) or any(step.state is StepState.DONE for step in fences)

    @property
    def placed_by_forewarn(self) -> bool:
        """Whether forewarn chooses where its machines go; otherwise the driver does and reports it."""
        return self.driver != EXTERNAL and not self.terms.driver_chooses

    @property
    def simulated(self) -> bool:
        """Whether the work is only simulated."""
        touches = self.work is not None and self.work.touches_machines
        return self.driver == SIMULATED and touches and not really_works_on_host(self.host_steps)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all stages."""
        if len(self.stages) == 1:  # the most common case
            return self.stages[0].steps
        return tuple([step for stage in self.stages for step in stage.steps])

    @property
    def running(self) -> tuple[Step, ...]:
        """The steps that are under way, including those whose driver cannot tell their state."""
        return tuple(step for step in self.steps if step.state is StepState.RUNNING)

    @property
    def running_host_steps(self) -> tuple[HostStep, ...]:
        """The same for steps on the host itself."""
        return tuple(step for step in self.host_steps if step.state is StepState.RUNNING)

    @property
    def all_steps(self) -> tuple[Step | HostStep, ...]:
        """The steps of all machines and of the host itself."""
        return (*self.steps, *self.host_steps)

    @property
    def driven(self) -> tuple[Step | HostStep, ...]:
        """The steps that drivers work on.

        This includes machines that restart with their host once the work on the host is done: their driver
        then verifies that they run.
        """
        restarted = any(
            step.task is HostTask.WORK and step.state is StepState.DONE for step in self.host_steps
        )
        mine = [
            step
            for stage in self.stages
            if stage.kind is not StageKind.HOST or restarted
            for step in stage.steps
            if step.state is StepState.RUNNING
        ]
        return (*mine, *self.running_host_steps)

    def driver_of(self, step: Step | HostStep) -> str:
        """Return the driver of a step."""
        return step.driver if isinstance(step, HostStep) else self.driver
