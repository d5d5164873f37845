"""An agent restores exactly what it has changed, even if it is killed repeatedly.

An administrator may have stopped something on purpose that a handler would stop. It stays stopped.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.agent.handling import Again, Outcome, Ready, Side, Task
from forewarn.agent.setup.handler import Handler
from tests.helpers.programs.agents import AgentHarness, event, settled
from tests.helpers.service.counts import tries

IDS = ("A", "B", "C")
THINGS = ("app", "db")


class Killed(BaseException):
    """Like `kill -9`, nothing catches it."""


class Machine:
    """Running things, and the state that an administrator wants."""

    def __init__(self, running: Sequence[str]) -> None:
        self.running = set(running)
        self.wanted = set(running)

    def start(self, thing: str) -> None:
        """Start the agent."""
        assert thing in self.wanted, f"{thing} was stopped on purpose, and is started"
        self.running.add(thing)


class Stopper:
    """A handler that stops things and follows the rules in `forewarn.agent.handling`."""

    def __init__(self, machine: Machine, *, flaky: bool) -> None:
        self._machine = machine
        self._flaky = flaky

    async def prepare(self, task: Task) -> Outcome:
        for thing in THINGS:
            if thing in self._machine.running:
                task.owe(thing)
                await asyncio.sleep(0)
                self._machine.running.discard(thing)
                await asyncio.sleep(0)
        return self._said(task)

    async def recover(self, task: Task) -> Outcome:
        for thing in task.owed:
            if thing not in self._machine.running:
                self._machine.start(thing)
            await asyncio.sleep(0)
        return self._said(task)

    def _said(self, task: Task) -> Outcome:
        return Again("not yet", 0.0) if self._flaky and task.attempt == 1 else Ready()

    def describe(self, side: Side) -> str:
        return "stops" if side is Side.PREPARE else "starts"

    def problems(self) -> Sequence[str]:
        return ()


class World:
    """An agent that is killed at a line of its journal, with its events and an administrator."""

    def __init__(self, folder: Path, running: Sequence[str], *, flaky: bool = False) -> None:
        self.machine = Machine(running)
        handler = Handler(name="stop", kind="test", does=Stopper(self.machine, flaky=flaky), retry=0.0)
        self.harness = AgentHarness(folder, handler)
        self.harness.at_a_line = self._at_a_line
        self.lives: int | None = None  # the number of lines until it is killed
        self.lines = 0
        self.listed: set[str] = set()
        self.harness.start()

    def _at_a_line(self) -> None:
        self.lines += 1
        if self.lives is not None:
            if self.lives <= 0:
                raise Killed
            self.lives -= 1

    @property
    def is_dead(self) -> bool:
        return self.lives == 0

    async def step(self, step: tuple[str, ...] | tuple[str, int]) -> None:
        match step:
            case ("list", str(id_)):
                self.listed.add(id_)
            case ("remove", str(id_)):
                self.listed.discard(id_)
            case ("start", str(thing)):
                self.machine.wanted.add(thing)
                self.machine.running.add(thing)
            case ("stop", str(thing)) if not self._is_owed(thing):
                self.machine.wanted.discard(thing)
                self.machine.running.discard(thing)
            case ("dies", int(lines)) if self.lives is None:
                self.lives = lines
        await self._shown()

    def _is_owed(self, thing: str) -> bool:
        return any(thing in tracked.owes("stop") for tracked in self.harness.journal.tracked_events.values())

    async def _shown(self) -> None:
        await self.harness.show(*map(event, sorted(self.listed)))
        if self.is_dead:
            await self.harness.stop()
            self.lives = None
            self.harness.start()
            await self._shown()

    async def finish(self) -> None:
        self.listed = set()
        for _ in range(3):
            await self._shown()
            await settled()
        assert self.harness.journal.tracked_events == {}
        assert self.machine.running == self.machine.wanted
        await self.harness.stop()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["list", "remove"]), st.sampled_from(IDS)),
        st.tuples(st.sampled_from(["start", "stop"]), st.sampled_from(THINGS)),
        st.tuples(st.just("dies"), st.integers(1, 25)),
    ),
    max_size=16,
)


@settings(max_examples=tries(30, long=1000), deadline=None)
@given(running=st.sets(st.sampled_from(THINGS)), flaky=st.booleans(), steps=STEPS)
def test_at_the_end_the_wanted_things_run(
    running: set[str], flaky: bool, steps: list[tuple[str, ...]]
) -> None:
    async def history(folder: Path) -> None:
        world = World(folder, sorted(running), flaky=flaky)
        for step in steps:
            await world.step(step)
        await world.finish()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(history(Path(folder)))


# The events overlap, and either may leave first.
OVERLAPS = (
    (("list", "A"), ("list", "B"), ("remove", "A"), ("remove", "B")),
    (("list", "A"), ("list", "B"), ("remove", "B"), ("remove", "A")),
    (("list", "A"), ("remove", "A"), ("list", "B"), ("remove", "B")),
)


@pytest.mark.parametrize("steps", OVERLAPS)
@pytest.mark.parametrize("running", [(), ("app",), THINGS])
def test_an_agent_killed_at_any_line_restores_exactly_its_changes(
    tmp_path: Path, steps: Sequence[tuple[str, str]], running: Sequence[str]
) -> None:
    async def life(folder: Path, dies_after: int | None) -> int:
        world = World(folder, running)
        if dies_after is not None:
            await world.step(("dies", dies_after))
        for step in steps:
            await world.step(step)
        await world.finish()
        return world.lines

    # The journal creates its folder.
    lines = asyncio.run(life(tmp_path / "whole", None))
    assert lines > 30
    for line in range(1, lines):
        asyncio.run(life(tmp_path / str(line), line))
