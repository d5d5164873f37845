"""Recovery at boot: after the restart of an event, before the event ends."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.agent.care.comparison import boot_entry
from forewarn.agent.handling import Again, Outcome, Ready, Side, Task
from forewarn.agent.journal.entries import Begun, Entry, Restarted, RestartExpected
from forewarn.agent.journal.journal_file import read_entries
from forewarn.agent.journal.tracked_events import TrackedEvent, entries_of, replay
from forewarn.agent.setup.agent_config import parse
from forewarn.agent.setup.handler import Handler, RecoverAt
from forewarn.agent.setup.summary import recovery_times
from forewarn.agent.status import draining
from forewarn.agent.verdicts import ApprovePolicy
from forewarn.core.basic_types import EventStatus, EventType
from forewarn.sdk.documents import Event
from tests.helpers.programs.agents import NOW, AgentHarness, Doing, event, settled, started

PREPARE, RECOVER = Side.PREPARE, Side.RECOVER
LATER = NOW + timedelta(minutes=20)  # after NotBefore


def play(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def handler(name: str, does: Doing, **more: Any) -> Handler:
    return Handler(name=name, does=does, **{"kind": "test", "retry": 0.0, **more})


def boots_into(harness: AgentHarness, boot: str, *, up: float = 30.0) -> None:
    """Start the agent in the machine's next boot."""
    harness.boot, harness.up_seconds = boot, up
    harness.start()


@pytest.mark.parametrize("type_", [EventType.REBOOT, EventType.REDEPLOY])
@pytest.mark.parametrize("seen_started", [True, False])
def test_handlers_recover_after_the_restart_although_the_event_is_listed(
    tmp_path: Path, type_: EventType, seen_started: bool
) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event(type=type_))
        assert harness.endpoint.approved == ["A"]
        if seen_started:
            await harness.show(started(type=type_))
        await harness.stop()
        assert draining(harness.journal.tracked_events, harness.config)
        boots_into(harness, "boot-2")
        await harness.show(started(type=type_))
        assert does.calls == [(PREPARE, "A", 1), (RECOVER, "A", 1)]
        assert f"the machine has restarted for the {type_}" in harness.said
        assert not draining(harness.journal.tracked_events, harness.config)
        assert "A" in harness.journal.tracked_events
        await harness.show(started(type=type_, description="still going on"))
        await harness.show()
        assert does.calls == [(PREPARE, "A", 1), (RECOVER, "A", 1)]
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_a_restart_before_the_start_of_the_event_does_not_count(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does), approve=ApprovePolicy.NEVER)
        harness.start()
        await harness.show(event())
        await harness.stop()
        boots_into(harness, "boot-2")
        await harness.show(event())
        await harness.show(started())
        assert does.calls == [(PREPARE, "A", 1)]
        await harness.stop()
        boots_into(harness, "boot-3")
        await harness.show(started())
        assert does.calls == [(PREPARE, "A", 1), (RECOVER, "A", 1)]
        await harness.stop()

    play(main())


@pytest.mark.parametrize(("up", "recovers"), [(60.0, True), (600.0, False)])
def test_a_start_that_no_boot_has_seen_counts_from_not_before(
    tmp_path: Path, up: float, recovers: bool
) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does), approve=ApprovePolicy.NEVER)
        harness.start()
        await harness.show(event())
        await harness.stop()
        harness.endpoint.now = LATER
        boots_into(harness, "boot-2", up=up)
        await harness.show(started())
        assert does.calls[1:] == [(RECOVER, "A", 1)] * recovers
        await harness.show()
        assert does.calls[1:] == [(RECOVER, "A", 1)]
        await harness.stop()

    play(main())


@pytest.mark.parametrize(
    "type_", [EventType.FREEZE, EventType.PREEMPT, EventType.TERMINATE, "Unheard", EventType.REBOOT]
)
def test_other_events_and_waiting_handlers_recover_when_the_event_ends(
    tmp_path: Path, type_: EventType | str
) -> None:
    async def main() -> None:
        does = Doing()
        waits = RecoverAt.EVENT_END if type_ is EventType.REBOOT else RecoverAt.BOOT
        harness = AgentHarness(tmp_path, handler("drain", does, recover_at=waits))
        harness.start()
        await harness.show(event(type=type_))
        await harness.show(started(type=type_))
        await harness.stop()
        boots_into(harness, "boot-2")
        await harness.show(started(type=type_))
        assert does.calls == [(PREPARE, "A", 1)]
        await harness.show()
        assert does.calls == [(PREPARE, "A", 1), (RECOVER, "A", 1)]
        await harness.stop()

    play(main())


def test_without_a_boot_id_recovery_waits_for_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.boot = None
        harness.start()
        await harness.show(event())
        await harness.stop()
        harness.start()
        await harness.show(started())
        assert does.calls == [(PREPARE, "A", 1)]
        await harness.stop()

    play(main())


def test_without_a_boot_in_the_journal_recovery_waits_for_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.boot = None  # written by an earlier version of the agent
        harness.start()
        await harness.show(event())
        await harness.show(started())
        await harness.stop()
        boots_into(harness, "boot-2")
        await harness.show(started())
        assert does.calls == [(PREPARE, "A", 1)]
        await harness.stop()

    play(main())


def test_some_handlers_recover_at_boot_and_others_when_the_event_ends(tmp_path: Path) -> None:
    async def main() -> None:
        first, second = Doing(), Doing()
        harness = AgentHarness(
            tmp_path, handler("drain", first), handler("batch", second, recover_at=RecoverAt.EVENT_END)
        )
        harness.start()
        await harness.show(event())
        await harness.stop()
        boots_into(harness, "boot-2")
        await harness.show(started())
        assert (first.calls[1:], second.calls[1:]) == ([(RECOVER, "A", 1)], [])
        await harness.show()
        assert (first.calls[2:], second.calls[1:]) == ([], [(RECOVER, "A", 1)])
        await harness.stop()

    play(main())


def test_a_handler_that_had_not_begun_does_not_prepare_after_the_restart(tmp_path: Path) -> None:
    async def main() -> None:
        slow, later = Doing(), Doing()
        slow.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", slow), handler("stop", later))
        harness.start()
        await harness.show(event())
        await harness.show(started())
        await harness.stop()
        slow.gate.set()
        boots_into(harness, "boot-2")
        await harness.show(started())
        assert slow.calls == [(PREPARE, "A", 1), (RECOVER, "A", 1)]
        assert later.calls == []
        await harness.stop()

    play(main())


def test_a_retried_recovery_at_boot_delays_neither_the_others_nor_the_end(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        def answer(task: Task) -> Outcome:
            return Ready() if task.side is PREPARE or ends else Again("not yet", 3600.0)

        ends: list[bool] = []
        stubborn, at_end = Doing(answer), Doing()
        harness = AgentHarness(
            tmp_path, handler("drain", stubborn), handler("batch", at_end, recover_at=RecoverAt.EVENT_END)
        )
        harness.start()
        await harness.show(event())
        await harness.stop()
        boots_into(harness, "boot-2")
        await harness.show(started())
        assert stubborn.calls[-1] == (RECOVER, "A", 1)
        await harness.show()
        assert at_end.calls[-1] == (RECOVER, "A", 1)
        ends.append(True)
        harness.watcher.reload(harness.config)  # a change wakes each retry
        await settled()
        assert harness.journal.tracked_events == {}
        assert stubborn.calls.count((RECOVER, "A", 1)) == at_end.calls.count((RECOVER, "A", 1)) == 1
        await harness.stop()

    play(main())


def test_a_preparation_that_another_event_needs_is_kept_at_boot(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        freeze = event("B", type=EventType.FREEZE)
        await harness.show(event(), freeze)
        await harness.show(started(), freeze)
        await harness.stop()
        boots_into(harness, "boot-2")
        await harness.show(started(), freeze)
        assert RECOVER not in [side for side, _, _ in does.calls]
        await harness.show(started())
        assert does.calls[-1] == (RECOVER, "B", 1)
        await harness.show()
        assert [side for side, _, _ in does.calls].count(RECOVER) == 1
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_handlers_recover_once_from_two_events_of_one_restart(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        both = (started("A"), started("B", type=EventType.REDEPLOY))
        await harness.show(*both)
        await harness.stop()
        boots_into(harness, "boot-2")
        await harness.show(*both)
        assert [side for side, _, _ in does.calls].count(RECOVER) == 1
        assert not draining(harness.journal.tracked_events, harness.config)
        await harness.show()
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_a_begun_recovery_at_boot_goes_on_without_the_endpoint(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event())
        await harness.stop()
        does.gate.clear()
        boots_into(harness, "boot-2")
        await harness.show(started())
        await harness.stop()  # during the recovery
        does.gate.set()
        harness.start()
        harness.watcher.resume()
        await settled()
        assert does.calls == [(PREPARE, "A", 1), (RECOVER, "A", 1), (RECOVER, "A", 2)]
        await harness.stop()

    play(main())


# Killed between any two lines


class Killed(BaseException):
    """Like `kill -9`, nothing catches it."""


class Life:
    """An event with a restart, and an agent that dies at a line of its journal."""

    def __init__(self, folder: Path, *, dies_at: int | None, crashes: bool) -> None:
        """Take whether the machine crashes before the event starts."""
        self._crashes = crashes
        self.recovered: list[str] = []
        handlers = [
            handler("drain", Doing(self._noting("drain"))),
            handler("batch", Doing(self._noting("batch")), recover_at=RecoverAt.EVENT_END),
        ]
        approve = ApprovePolicy.NEVER if crashes else ApprovePolicy.WHEN_READY
        self.harness = AgentHarness(folder, *handlers, approve=approve)
        self.harness.at_a_line = self._at_a_line
        self.lines = 0
        self._dies_at = dies_at
        self._listed: Sequence[Event] = ()

    def _noting(self, name: str) -> Callable[[Task], Outcome]:
        def answer(task: Task) -> Outcome:
            if task.side is RECOVER:
                self.recovered.append(f"{name} in {self.harness.boot}, {len(self._listed)} listed")
            return Ready()

        return answer

    def _at_a_line(self) -> None:
        self.lines += 1
        if self.is_dead:
            raise Killed

    @property
    def is_dead(self) -> bool:
        return self._dies_at is not None and self.lines >= self._dies_at

    async def _show(self, *events: Event) -> None:
        """Show a document; restart an agent that dies, and show it again."""
        self._listed = events
        await self.harness.show(*events)
        if self.is_dead:
            await self.harness.stop()
            self._dies_at = None
            self.harness.start()
            await self.harness.show(*events)

    async def run(self) -> None:
        harness = self.harness
        harness.start()
        await self._show(event())
        if not self._crashes:
            await self._show(started())
        await harness.stop()
        harness.endpoint.now = LATER
        boots_into(harness, "boot-2", up=600.0)
        await self._show(started())
        assert self._unrecovered() == (["drain", "batch"] if self._crashes else ["batch"])
        await self._show()
        await self._show()
        assert harness.journal.tracked_events == {}
        await harness.stop()

    def _unrecovered(self) -> Sequence[str]:
        (tracked,) = self.harness.journal.tracked_events.values()
        return [name for name in tracked.touched() if not tracked.recovered(name)]


def _life(folder: Path, dies_at: int | None, *, crashes: bool) -> Life:
    folder.mkdir()
    life = Life(folder, dies_at=dies_at, crashes=crashes)
    asyncio.run(life.run())
    return life


@pytest.mark.parametrize("crashes", [False, True])
def test_killed_at_any_line_handlers_recover_once_at_the_right_time(tmp_path: Path, crashes: bool) -> None:
    whole = _life(tmp_path / "whole", None, crashes=crashes)
    assert sorted(whole.recovered) == [
        "batch in boot-2, 0 listed",
        f"drain in boot-2, {0 if crashes else 1} listed",
    ]
    for line in range(1, whole.lines + 1):
        life = _life(tmp_path / f"dies-at-{line}", line, crashes=crashes)
        # Only an attempt without an end in the journal runs again, as attempt 2.
        interrupted = len(life.recovered) - 2
        assert interrupted in (0, 1), (line, life.recovered)
        assert set(life.recovered) == set(whole.recovered), line
        for name in ("drain", "batch"):
            assert _attempts(life.harness.entries, name) in ([1], [1, 2]), line


def _attempts(entries: Sequence[Entry], name: str) -> list[int]:
    """Return the attempts to recover from the journal."""
    begun = [each for each in entries if isinstance(each, Begun) and each.handler == name]
    return sorted({each.attempt for each in begun if each.side is RECOVER})


# The journal and the config


def test_the_boot_and_the_restart_survive_a_rewritten_journal(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path, handler("drain", Doing()))
        harness.start()
        await harness.show(event())
        await harness.stop()
        boots_into(harness, "boot-2")
        await harness.show(started())
        tracked = harness.journal.tracked_events
        assert replay(entries_of(tracked)) == tracked
        assert read_entries((tmp_path / "agent.journal").read_bytes())[1]
        assert tracked["A"].boot == "boot-2"
        assert tracked["A"].restarted == NOW
        await harness.stop()

    play(main())


def test_an_event_of_an_unknown_status_shows_no_restart() -> None:
    tracked = TrackedEvent(event=started(), since=NOW, boot="boot-1")
    odd = event(status="Rebooting")
    assert boot_entry(
        tracked, odd, boot="boot-2", up_seconds=1.0, server_now=lambda: NOW, now=NOW
    ) == RestartExpected(event="A", boot="boot-2")
    certain = boot_entry(tracked, started(), boot="boot-2", up_seconds=None, server_now=lambda: NOW, now=NOW)
    assert certain == Restarted(event="A", boot="boot-2", at=NOW)
    assert tracked.event.status is EventStatus.STARTED


def test_when_handlers_recover_is_set_for_all_or_for_one() -> None:
    text = """
    [agent]
    {all}
    [[handlers]]
    name = "drain"
    kind = "exec"
    recover = ["/bin/true"]
    {one}
    [[handlers]]
    name = "tell"
    kind = "log"
    """

    def read(all_: str, one: str) -> list[RecoverAt]:
        config = parse(text.replace("{all}", all_).replace("{one}", one), environment={})
        return [each.recover_at for each in config.handlers]

    assert recovery_times(parse(text.format(all="", one=""), environment={})) == (
        "Recovery: at boot after a Reboot or Redeploy (drain), otherwise when the event ends."
    )
    boot, end = RecoverAt.BOOT, RecoverAt.EVENT_END
    assert read("", "") == [boot, end]
    assert read('recover-at = "event-end"', "") == [end, end]
    assert read('recover-at = "event-end"', 'recover-at = "boot"') == [boot, end]
    assert read("", 'recover-at = "event-end"') == [end, end]
