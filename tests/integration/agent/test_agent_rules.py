"""Rules of the agent, over random histories of documents, failures, restarts and torn journals.

Every handled event gets exactly one recovery. The agent approves only after its handlers are ready. Work that
ended according to the journal does not run again. A handler does one thing at a time.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.agent.care.comparison import ENOUGH_DOCUMENTS, RESTART_SECONDS
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side, Task
from forewarn.agent.journal.entries import Approved, Begun, Ended, Ending, Entry, Over, TakenUp, key
from forewarn.agent.journal.journal_file import read_entries
from forewarn.agent.setup.handler import Handler, OnFailure, RecoverAt
from forewarn.agent.verdicts import ApprovePolicy, Approver, HandlerFilter
from forewarn.core.basic_types import EventStatus, EventType, Source
from forewarn.sdk.documents import Event
from tests.helpers.programs.agents import MACHINE, NOW, AgentHarness, Doing, event, settled
from tests.helpers.service.counts import tries

IDS = ("A", "B", "C")


class Whim(Doing):
    """A handler with a repeating list of answers, and at most two more attempts."""

    def __init__(self, answers: Sequence[str]) -> None:
        super().__init__(self._answered)
        self._answers = answers
        self._asked = 0

    def _answered(self, task: Task) -> Outcome:
        self._asked += 1
        match self._answers[self._asked % len(self._answers)]:
            case "again" if task.attempt < 3:
                return Again("not yet", 0.0)
            case "never":
                return Never("no")
            case _:
                return Ready()


HANDLERS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["ready", "ready", "again", "never"]), min_size=1, max_size=3),
        st.sampled_from(OnFailure),
        st.sampled_from([None, (EventType.REBOOT,), (EventType.FREEZE, EventType.PREEMPT)]),
        st.booleans(),  # whether it is slow
    ),
    max_size=3,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.sampled_from(IDS),
            st.sampled_from(EventType),
            st.sampled_from([(MACHINE,), ("a-0", MACHINE), (MACHINE, "z-9"), ("z-9",)]),
            st.sampled_from(Source),
            st.booleans(),
        ),
        st.tuples(st.sampled_from(["start", "remove", "unname", "move"]), st.sampled_from(IDS)),
        st.tuples(
            st.sampled_from(["restart-incarnation", "restart-agent", "restart-machine", "release", "wait"])
        ),
    ),
    max_size=14,
)


class World:
    """The current document and the agent."""

    def __init__(
        self,
        folder: Path,
        handlers: Sequence[Handler],
        approve: ApprovePolicy,
        approver: Approver,
        *,
        settle: float,
    ) -> None:
        self.harness = AgentHarness(folder, *handlers, approve=approve, approver=approver, settle=settle)
        self.handlers = handlers
        self.listed: dict[str, Event] = {}
        self.incarnation = 5
        self.moves = 0
        self.harness.endpoint.on_approve = self._check_approval

    async def step(self, step: tuple[object, ...]) -> None:
        self._happens(step)
        match step:
            case ("restart-incarnation",):
                self.incarnation = 0
            case ("restart-agent",):
                await self.harness.stop()
                self.harness.start()
            case ("restart-machine",):
                await self.harness.stop()
                self.harness.boot = f"{self.harness.boot}+"
                self.harness.start()
            case ("release",):
                self.release()
            case ("wait",):
                self.harness.monotonic += RESTART_SECONDS
        self.incarnation += 1
        await self.harness.show(*self.listed.values(), incarnation=self.incarnation)

    def _happens(self, step: tuple[object, ...]) -> None:
        match step:
            case ("add", str(id_), type_, resources, source, bool(born)):
                shown = event(id_, type=type_, resources=resources, source=source)
                self.listed[id_] = _begun(shown) if born else shown
            case ("start", str(id_)) if id_ in self.listed:
                self.listed[id_] = _begun(self.listed[id_])
            case ("remove", str(id_)):
                self.listed.pop(id_, None)
            case ("unname", str(id_)) if id_ in self.listed:
                self.listed[id_] = _with(self.listed[id_], resources=("z-9",))
            case ("move", str(id_)) if id_ in self.listed and not self.listed[id_].started:
                self.moves += 1
                later = NOW + timedelta(minutes=15 + self.moves)
                self.listed[id_] = _with(self.listed[id_], not_before=later)

    def release(self) -> None:
        """Release every slow handler once."""
        for handler in self.handlers:
            assert isinstance(handler.does, Doing)
            gate, handler.does.gate = handler.does.gate, asyncio.Event()
            gate.set()

    async def finish(self) -> None:
        """Remove all events and wait until everything has ended."""
        self.listed = {}
        self.harness.monotonic += 2 * RESTART_SECONDS
        for _ in range(ENOUGH_DOCUMENTS):
            await self.step(("wait",))
        # Each handler may want several attempts for each event.
        for _ in range(4 * len(IDS) * (len(self.handlers) + 1)):
            self.release()
            await settled()

    def _check_approval(self, id_: str) -> None:
        tracked = self.harness.context.tracked(key(id_))
        for handler in self.handlers:
            meant = handler.when.types is None or tracked.event.type in handler.when.types
            attempt = tracked.attempt(Side.PREPARE, handler.name)
            if meant:
                assert attempt is not None, f"{id_} approved before {handler.name} was run"
                assert attempt.settled, f"{id_} approved while {handler.name} was not done"
                ready = attempt.ending is Ending.READY or handler.on_failure is OnFailure.CONTINUE
                assert ready, f"{id_} approved although {handler.name} failed"


def _begun(event_: Event) -> Event:
    return _with(event_, status=EventStatus.STARTED, not_before=None)


def _with(event_: Event, **changes: object) -> Event:
    from dataclasses import replace

    return replace(event_, **changes)  # type: ignore[arg-type]


def check(entries: Sequence[Entry]) -> None:
    """Check the whole journal against the rules."""
    open_: dict[str, Counter[tuple[Side, str]]] = {}
    settled_: dict[str, dict[tuple[Side, str], Ending]] = {}
    for entry in entries:
        id_ = key(entry.event)
        match entry:
            case TakenUp():
                assert id_ not in open_, "taken up twice"
                open_[id_], settled_[id_] = Counter(), {}
            case Begun():
                share = (entry.side, entry.handler)
                assert share not in settled_[id_], "what had ended was run again"
                open_[id_][share] += 1
                assert open_[id_][share] == entry.attempt, "attempts are counted"
            case Ended(ending=Ending.READY | Ending.NEVER):
                share = (entry.side, entry.handler)
                assert share not in settled_[id_], "ended twice"
                settled_[id_][share] = entry.ending
            case Over():
                begun = {name for side, name in open_[id_] if side is Side.PREPARE}
                back = {name for side, name in settled_[id_] if side is Side.RECOVER}
                assert begun == back, "all that was begun is undone, and nothing else"
                del open_[id_]
            case Approved():
                assert id_ in open_
            case _:
                assert id_ in open_
    assert open_ == {}, "an event was never come back from"


def made(
    described: Sequence[tuple[list[str], OnFailure, tuple[EventType, ...] | None, bool]],
) -> list[Handler]:
    handlers = []
    for number, (answers, on_failure, types, slow) in enumerate(described):
        does = Whim(answers)
        if slow:
            does.gate.clear()
        handlers.append(
            Handler(
                name=f"h{number}",
                kind="notify" if number == 1 else "test",  # it recovers concurrently
                does=does,
                when=HandlerFilter(types=types),
                retry=0.0,
                on_failure=on_failure,
                recover_at=RecoverAt.EVENT_END if number == 1 else RecoverAt.BOOT,
            )
        )
    return handlers


@settings(max_examples=tries(30, long=1000), deadline=None)
@given(
    handlers=HANDLERS,
    steps=STEPS,
    approve=st.sampled_from(ApprovePolicy),
    approver=st.sampled_from(Approver),
    settle=st.sampled_from([0.0, RESTART_SECONDS]),
)
def test_every_event_has_one_recovery_and_is_approved_only_when_ready(
    handlers: list[tuple[list[str], OnFailure, tuple[EventType, ...] | None, bool]],
    steps: list[tuple[object, ...]],
    approve: ApprovePolicy,
    approver: Approver,
    settle: float,
) -> None:
    async def history(folder: Path) -> None:
        world = World(folder, made(handlers), approve, approver, settle=settle)
        world.harness.start()
        for step in steps:
            await world.step(step)
        await world.finish()
        assert world.harness.journal.tracked_events == {}
        await world.harness.stop()
        check(world.harness.entries)
        assert all(isinstance(each.does, Doing) and each.does.most_at_once <= 1 for each in world.handlers)
        if approve is ApprovePolicy.NEVER:
            assert world.harness.endpoint.approved == []

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(history(Path(folder)))


def test_the_check_finds_violations() -> None:
    taken = TakenUp(event=event(), at=NOW)
    begun = Begun(event="A", side=Side.PREPARE, handler="h", attempt=1, at=NOW)
    ended = Ended(event="A", side=Side.PREPARE, handler="h", ending=Ending.READY, at=NOW)
    for wrong in ([taken], [taken, begun, ended, begun], [taken, begun, ended, Over(event="A", at=NOW)]):
        with pytest.raises(AssertionError):
            check(wrong)


def _whole_life(folder: Path) -> bytes:
    """Write the journal of an event with a retry and a failure."""

    async def life() -> None:
        harness = AgentHarness(folder, *_three())
        harness.start()
        await harness.show(event())
        for _ in range(5):
            await settled()
        await harness.show(_begun(event()))
        await harness.show()
        for _ in range(5):
            await settled()
        await harness.stop()

    asyncio.run(life())
    return (folder / "agent.journal").read_bytes()


def _three() -> list[Handler]:
    return made(
        [
            (["ready"], OnFailure.HOLD, None, False),
            (["ready", "again"], OnFailure.HOLD, None, False),
            (["never"], OnFailure.CONTINUE, None, False),
        ]
    )


@pytest.mark.parametrize("listed", [True, False], ids=["still listed", "gone"])
def test_an_agent_killed_at_any_line_loses_and_repeats_nothing(tmp_path: Path, listed: bool) -> None:
    (tmp_path / "whole").mkdir()
    whole = _whole_life(tmp_path / "whole")
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    cuts = sorted({0, *ends, *(end + 9 for end in ends[:-1])})  # between two lines, and inside a line
    for cut in cuts:
        folder = tmp_path / f"cut-{cut}"
        folder.mkdir()
        (folder / "agent.journal").write_bytes(whole[:cut])

        async def after(folder: Path = folder) -> list[Entry]:
            harness = AgentHarness(folder, *_three())
            harness.start()
            if listed:
                await harness.show(event())
                for _ in range(5):
                    await settled()
            await harness.show()
            for _ in range(5):
                await settled()
            assert harness.journal.tracked_events == {}
            await harness.stop()
            return harness.entries

        known = read_entries(whole[:cut])[1]
        check([*known, *asyncio.run(after())])
