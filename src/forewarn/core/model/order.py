"""Orders, their stages, and the steps of single machines."""

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
    """What names one try of a step for good."""

    order: OrderId
    subject: str  # whose step it is: a machine's id, or `host/` and the task
    number: int  # the fencing token


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedHost:
    """A host that cannot take a machine, as the driver found out before it began."""

    host: HostName
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Precheck:
    """What the driver of a machine was asked before guests are told of a move, and when it answered.

    It agreed if it has answered, knows, and the target is not among the hosts that refuse the machine.
    """

    source: HostName | None
    target: HostName
    asked_at: datetime
    lost: int = 0  # how often the same was asked before, and no answer came
    answered_at: datetime | None = None
    unknown: str = ""  # why the driver cannot tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One machine's share of a stage: what a driver does."""

    machine: MachineId
    name: MachineName
    group: GroupName
    update_domain: int
    work: Work
    moves: bool = False  # the machine is on another host afterwards
    state: StepState = StepState.WAITING
    attempt: int = 1
    target: HostName | None = None  # where the machine is to be afterwards, if it moves
    begun_at: datetime | None = None
    look_at: datetime | None = None  # when to ask the driver again, while running, if that is known
    taken_up_at: datetime | None = None  # when somebody outside first said that they are at it
    unknown_at: datetime | None = None  # when its driver first could not tell how it is doing
    mark: str = ""  # what its driver recognises this attempt by
    progress: float | None = None  # how much of it is done, from 0 to 1, if its driver says so
    precheck: Precheck | None = None  # of a move that is to be announced
    refused: tuple[RefusedHost, ...] = ()  # where its machine cannot go
    failures: int = 0  # how often it has failed since a person, or another way to move, last began it anew
    failed_on: tuple[HostName, ...] = ()  # where it was to go then: others are better
    withdrawals: int = 0  # of a move: as of its order, which counts stages that start together
    lowered_from: Work | None = None  # how it was to go first, which failed: another way, another event
    again_at: datetime | None = None  # no event before tells of it: it has failed, and waits so long
    too_late: bool = False  # its driver was asked to call it off, and cannot any more
    impact: float | None = None  # the seconds its machine was really away, if its driver says so
    ended_at: datetime | None = None
    why: str = ""  # why it failed or became moot; while it runs, why its driver cannot tell how it is doing

    @property
    def subject(self) -> str:
        """Whose step it is, as attempts name it."""
        return self.machine


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStep:
    """What is done to the host itself, by a hook or a driver."""

    task: HostTask
    driver: str
    state: StepState = StepState.WAITING
    attempt: int = 1
    begun_at: datetime | None = None
    look_at: datetime | None = None  # as of a machine's step; likewise the others
    taken_up_at: datetime | None = None
    unknown_at: datetime | None = None
    mark: str = ""
    progress: float | None = None
    too_late: bool = False
    ended_at: datetime | None = None
    why: str = ""
    back_by: datetime | None = None  # of work: when its host is lost unless it is over
    host_was: HostState | None = None  # what its host was before it was lost

    @property
    def subject(self) -> str:
        """Whose step it is, as attempts name it."""
        return f"host/{self.task}"

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.task}"


def really_works_on_host(steps: Iterable[HostStep]) -> bool:
    """Return whether somebody works on a host itself, whoever only simulates what is done to its machines."""
    return any(step.task is HostTask.WORK and step.driver != SIMULATED for step in steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of an order: machines of at most one update domain of any group, but for evacuations.

    Where machines leave a host a few at a time, each event goes by itself.
    """

    state: StageState
    steps: tuple[Step, ...]
    kind: StageKind = StageKind.MACHINES
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTerms:
    """What was asked for beside the action itself."""

    emergency: str = ""  # why the promised notice is not kept; only an operator may say so
    notice: timedelta | None = None  # the notice of an emergency
    at_once: bool = False  # the owner of the machine does not want to wait for its guests
    heartbeat: timedelta | None = None  # how long an external driver may be silent
    expected: timedelta | None = None  # how long the work is expected to take, where windows bind it
    paused: str = ""  # why the rollout it is part of does not go on
    winding_down: str = ""  # why nothing more of it begins: what has started ends
    deadline: datetime | None = None  # from then on windows give way, and guests cannot defer it further
    rollout: str | None = None  # the rollout that the order is part of
    rehearsal: str = ""  # the scenario that it is part of, which only guests that agreed to it may meet
    whole: bool = False  # the host's machines are done in one go; refused where that breaks rule 4
    together: str = ""  # why they are done in one go though that breaks rule 4; only an operator may say so
    abandoned_by: str = ""  # who has given it up, while steps of it still run
    mode: ServiceMode | None = None  # what becomes of the machines of a host that is worked on
    returning: bool = False  # machines that left a host for work on it come back afterwards
    host_driver: str | None = None  # who does the work on the host itself; None: who treats its machines
    fenced: str = ""  # who vouches that the failed host does not touch its machines any more, and why
    despite_hold: bool = False  # an emergency that a hold does not stop
    stopped_by: str = ""  # the hold that has called it off
    stopped_because: str = ""  # and its reason
    driver_chooses: bool = False  # where its machines go is for its driver to say
    homes: tuple[HostName, ...] = ()  # where its machines had better go: hosts like the one they leave
    to: HostName | None = None  # the one host that its machine goes to; None: any that is good

    @property
    def undivided(self) -> bool:
        """Whether all machines of the host are announced, awaited and worked on together."""
        return self.whole or bool(self.together)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is going to be done, by whom and why."""

    id: OrderId
    number: int  # the record that says it was placed; orders are listed by it
    action: Action
    work: Work | None  # None: nothing is done to machines (cordon, restore, …)
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
    host_steps: tuple[HostStep, ...] = ()  # in the order in which they are done
    waiting: tuple[Waiting, ...] = ()
    created_at: datetime
    announced_at: datetime | None = None  # when guests first heard of it: from then on it is never silent
    withdrawals: int = 0  # how often its announcements came to nothing since it last started anything
    ended_at: datetime | None = None
    why: str = ""  # why it failed or was cancelled
    due_at: datetime | None = None  # when the engine must look at it next
    heard_at: datetime | None = None  # real time: when those who do the work outside were last heard of

    @property
    def open(self) -> bool:
        """Whether anything may still come of it."""
        return self.ended_at is None

    @property
    def stuck(self) -> bool:
        """Whether a person must do something before it can go on."""
        return any(wait.stuck for wait in self.waiting)

    @property
    def given_up(self) -> str:
        """Who has given it up, in words: a person, or a hold that stops it; "" if nobody has."""
        terms = self.terms
        if terms.stopped_by:
            return f"stopped by {terms.abandoned_by}: {terms.stopped_because}"
        if self.state is OrderState.CANCELLED and terms.abandoned_by:
            return f"cancelled by {terms.abandoned_by}"
        return f"abandoned by {terms.abandoned_by}" if terms.abandoned_by else ""

    @property
    def is_fenced(self) -> bool:
        """Whether the host of a failure touches its machines no more, as its fence or a person says."""
        fences = (step for step in self.host_steps if step.task is HostTask.FENCE)
        return bool(self.terms.fenced) or any(step.state is StepState.DONE for step in fences)

    @property
    def placed_here(self) -> bool:
        """Whether forewarn chooses where its machines go; else whoever does the work, and reports it."""
        return self.driver != EXTERNAL and not self.terms.driver_chooses

    @property
    def simulated(self) -> bool:
        """Whether nothing is really done; what does nothing to any machine is as real as ever."""
        touches = self.work is not None and self.work.touches_machines
        return self.driver == SIMULATED and touches and not really_works_on_host(self.host_steps)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps of all stages."""
        if len(self.stages) == 1:  # as most orders have
            return self.stages[0].steps
        return tuple([step for stage in self.stages for step in stage.steps])

    @property
    def running(self) -> tuple[Step, ...]:
        """The steps that are under way, also where their driver cannot tell how."""
        return tuple(step for step in self.steps if step.state is StepState.RUNNING)

    @property
    def running_host_steps(self) -> tuple[HostStep, ...]:
        """The steps on the host itself that are under way, likewise."""
        return tuple(step for step in self.host_steps if step.state is StepState.RUNNING)

    @property
    def all_steps(self) -> tuple[Step | HostStep, ...]:
        """The steps of all machines, and those of the host itself."""
        return (*self.steps, *self.host_steps)

    @property
    def driven(self) -> tuple[Step | HostStep, ...]:
        """The steps that drivers work on.

        A machine that restarts with its host is among them once the work on the host is done: its driver
        verifies then that it runs.
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
        """Return who does a step."""
        return step.driver if isinstance(step, HostStep) else self.driver
