"""Prechecks of the moves in a rollout plan: the questions for drivers, and their objections."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from forewarn.clock import monotonic
from forewarn.control.driver import DriverTask
from forewarn.control.plan_prechecks import PlanPrechecks, move_of
from forewarn.core.basic_types import Action, HostName, MachineName, OrderId, Work
from forewarn.core.filters import MachineFilter
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.policy import Policy
from forewarn.core.rollouts import evacuation
from forewarn.core.rollouts.evacuation import (
    EvacuationInput,
    MoveAnswer,
    PlannedMove,
    machines_to_evacuate,
    planned_moves,
    verdict,
)
from forewarn.store.snapshots import Snapshot

# In seconds, because a person waits for the plan. It shows which answers are missing.
WITHIN = 5.0
# As many as lanes answer in that time. The machines of later waves are not prechecked.
MOST_MACHINES = 200
# Targets per machine to ask about at once. If all refuse, the next ones follow.
TARGETS_AT_ONCE = 3

NOT_HEARD = MoveAnswer(unknown="its driver has not answered yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecheckedMove:
    """A planned move, with everything that its driver needs to know."""

    move: PlannedMove
    machine: Machine
    source: Host
    targets: Mapping[HostName, Host]
    driver: str

    def tasks(self, work: Work, *, asked: int, now: datetime) -> list[DriverTask]:
        """Return the next questions, one per possible target. `asked` targets were asked about before."""
        return [
            DriverTask(
                order=OrderId(f"plan/{self.machine.id}"),
                attempt=0,
                action=Action.SERVICE,
                work=work,
                machine=self.machine,
                source=self.source,
                target=target,
                moves=True,
                begun_at=now,
                now=now,
                driver=self.driver,
            )
            for target in [*self.targets.values()][asked : asked + TARGETS_AT_ONCE]
        ]


def load(
    snapshot: Snapshot, rollout: Rollout, survey: HostSurvey, around: EvacuationInput, policy: Policy
) -> tuple[list[PrecheckedMove], int]:
    """Load the first moves of a plan whose drivers support prechecks, and count the others."""
    known = snapshot.rules.host_drivers()
    drivers = {host: rollout.terms.driver or known.of(host) for host in rollout.hosts}
    able = {host for host, driver in drivers.items() if driver in policy.prechecking}
    emptied = evacuation.find_obstacles(rollout, survey, around) if able else ()
    leaving = list(machines_to_evacuate(rollout, around, emptied, of=able))
    moves = planned_moves(leaving[:MOST_MACHINES], around)
    reader = _HostReader(snapshot)
    found = [
        PrecheckedMove(
            move=move,
            machine=machine,
            source=survey.hosts[move.source],
            targets=reader.hosts(move.targets),
            driver=drivers[move.source],
        )
        for move in moves
        if move.targets and (machine := reader.machine(move)) is not None
    ]
    return found, max(len(leaving) - MOST_MACHINES, 0)


def warnings_of(not_asked: int) -> list[str]:
    """Warn that drivers were not asked about some machines."""
    machines = f"{not_asked} more machine{'s' if not_asked > 1 else ''}"
    asked = f"drivers were asked about the first {MOST_MACHINES} machines that leave their hosts"
    return [f"{asked}: whether {machines} can leave is not known"] if not_asked else []


class _HostReader:
    """Reads hosts and their machines, each once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._hosts: dict[HostName, Host | None] = {}
        self._machines: dict[HostName, Mapping[MachineName, Machine]] = {}

    def machine(self, move: PlannedMove) -> Machine | None:
        if move.source not in self._machines:
            carried = MachineFilter(host=move.source)
            there, _ = self._snapshot.fleet.machines(carried, after=None, limit=MOST_MACHINES)
            self._machines[move.source] = {machine.name: machine for machine in there}
        return self._machines[move.source].get(move.machine)

    def hosts(self, names: Iterable[HostName]) -> dict[HostName, Host]:
        for name in names:
            if name not in self._hosts:
                self._hosts[name] = self._snapshot.fleet.host(name)
        return {name: host for name in names if (host := self._hosts[name]) is not None}


def find_obstacles(
    asked: Sequence[PrecheckedMove], prechecks: PlanPrechecks, *, now: datetime
) -> tuple[dict[tuple[HostName, MachineName], str], list[str]]:
    """Return the objections to moves, and warnings about machines that cannot move live."""
    found, lowered = _round(asked, prechecks, 0, now=now)
    if not lowered:
        return found, []
    again = [each for each in asked if _key(each) in lowered]
    more, _ = _round(again, prechecks, 1, now=now)
    warnings = [
        f"{machine} cannot be moved live, and is redeployed: {why}"
        for (host, machine), why in lowered.items()
        if (host, machine) not in more
    ]
    return found | more, warnings


def _round(
    asked: Sequence[PrecheckedMove], prechecks: PlanPrechecks, kind: int, *, now: datetime
) -> tuple[dict[tuple[HostName, MachineName], str], dict[tuple[HostName, MachineName], str]]:
    """Ask about one kind of move; return the objections, and the machines for which another kind is left."""
    answers = _answers(asked, prechecks, kind, now=now)
    against: dict[tuple[HostName, MachineName], str] = {}
    lowered: dict[tuple[HostName, MachineName], str] = {}
    for each in asked:
        answer = verdict(answers[_key(each)], takers=each.move.takers)
        if answer.unknown:
            against[_key(each)] = f"whether it can leave is not known: {answer.unknown}"
        elif answer.refused and kind + 1 < len(each.move.works):
            lowered[_key(each)] = answer.refused
        elif answer.refused:
            against[_key(each)] = answer.refused
    return against, lowered


def _answers(
    asked: Sequence[PrecheckedMove], prechecks: PlanPrechecks, kind: int, *, now: datetime
) -> dict[tuple[HostName, MachineName], dict[HostName, MoveAnswer]]:
    """Ask about some targets per machine, and about more until one accepts it or the time is up."""
    answers: dict[tuple[HostName, MachineName], dict[HostName, MoveAnswer]] = {
        _key(each): {} for each in asked
    }
    until = monotonic() + WITHIN
    left, waits = list(asked), WITHIN
    while left and waits >= 0:
        tasks = {
            _key(each): each.tasks(each.move.works[kind], asked=len(answers[_key(each)]), now=now)
            for each in left
        }
        received = prechecks.ask(
            [task for own_tasks in tasks.values() for task in own_tasks], now=now, within=waits
        )
        for name, own_tasks in tasks.items():
            moves = [move for task in own_tasks if (move := move_of(task)) is not None]
            answers[name] |= {move[-1]: received.get(move, NOT_HEARD) for move in moves}
        left = [each for each in left if _goes_on(each, answers[_key(each)])]
        waits = until - monotonic()
    return answers


def _goes_on(asked: PrecheckedMove, answers: Mapping[HostName, MoveAnswer]) -> bool:
    """Return whether to ask about more targets: none has accepted the machine yet."""
    return len(answers) < len(asked.targets) and MoveAnswer() not in answers.values()


def _key(asked: PrecheckedMove) -> tuple[HostName, MachineName]:
    return asked.move.source, asked.move.machine
