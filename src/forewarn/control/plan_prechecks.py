"""Prechecks for rollout plans: drivers tell whether the machines of a plan can leave their hosts.

A plan waits some seconds for the answers. They are cached for a minute, for the next plan. An order asks
again before it announces a move (`control/engine/driver_calls.py`).
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forewarn.control.driver import DriverTask
from forewarn.core.basic_types import HostName, MachineId, Work
from forewarn.core.rollouts.evacuation import MoveAnswer

KEPT_FOR = timedelta(minutes=1)

Move = tuple[MachineId, HostName, Work, HostName]


def move_of(task: DriverTask) -> Move | None:
    """Return the move of a task; None if it moves no machine from one host to another."""
    if task.machine is None or task.source is None or task.target is None:
        return None
    return task.machine.id, task.source.name, task.work, task.target.name


@dataclass(slots=True)
class PlanPrechecks:
    """Drivers' answers about planned moves. Thread-safe."""

    # Calls a driver. None: not possible in this process. Set before any thread starts.
    submit: Callable[[DriverTask], None] | None = None
    _news: threading.Condition = field(default_factory=threading.Condition)
    _answers: dict[Move, tuple[MoveAnswer, datetime]] = field(default_factory=dict)  # lock: self._news

    def ask(self, tasks: Sequence[DriverTask], *, now: datetime, within: float) -> Mapping[Move, MoveAnswer]:
        """Return the answers to these moves that arrive within a time, in seconds. `now` is real time."""
        if self.submit is None:
            return {}
        moves = {move: task for task in tasks if (move := move_of(task)) is not None}
        with self._news:
            self._answers = {
                move: answer for move, answer in self._answers.items() if now - answer[1] < KEPT_FOR
            }
            new = [task for move, task in moves.items() if move not in self._answers]
        for task in new:
            self.submit(task)
        with self._news:
            self._news.wait_for(lambda: moves.keys() <= self._answers.keys(), timeout=within)
            return {move: self._answers[move][0] for move in moves if move in self._answers}

    def heard(self, task: DriverTask, answer: MoveAnswer) -> None:
        """Save the answer of a driver, and wake the plans that wait for it."""
        if (move := move_of(task)) is None:
            return
        # An unknown result counts as expired: the next plan asks again.
        at = task.now - (KEPT_FOR if answer.unknown else timedelta())
        with self._news:
            self._answers[move] = answer, at
            self._news.notify_all()
