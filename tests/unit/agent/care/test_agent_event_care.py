"""The work on events: handlers run in order, the agent approves when they are ready, and they recover."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.agent.care.agent_context import REFUSED_SECONDS, Turns
from forewarn.agent.care.attempts import file_name
from forewarn.agent.care.comparison import RESTART_SECONDS
from forewarn.agent.care.event_care import EventCare
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side, Task
from forewarn.agent.journal.entries import Ended, Over
from forewarn.agent.setup.handler import Handler, OnFailure
from forewarn.agent.status import draining
from forewarn.agent.verdicts import ApprovePolicy, Approver, HandlerFilter
from forewarn.core.basic_types import EventType, Source
from forewarn.sdk.documents import Event, UnreadableEvent
from forewarn.sdk.guest_errors import Closed, EndpointRefused, EndpointUnavailable, GuestError
from tests.helpers.programs.agents import NOW, AgentHarness, Doing, event, settled, started

PREPARE, RECOVER = Side.PREPARE, Side.RECOVER


def handler(name: str, does: Doing, **more: Any) -> Handler:
    return Handler(name=name, does=does, **{"kind": "test", "retry": 0.0, **more})


def play(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def test_handlers_prepare_in_order_and_recover_in_reverse(tmp_path: Path) -> None:
    async def main() -> None:
        order: list[tuple[str, str]] = []

        def noting(name: str) -> Doing:
            def answer(task: Task) -> Outcome:
                order.append((name, task.side.value))
                return Ready()

            return Doing(answer)

        harness = AgentHarness(tmp_path, handler("drain", noting("drain")), handler("stop", noting("stop")))
        harness.start()
        await harness.show(event())
        assert order == [("drain", "prepare"), ("stop", "prepare")]
        assert harness.endpoint.approved == ["A"]
        await harness.show(started())
        assert len(order) == 2
        await harness.show()
        assert order[2:] == [("stop", "recover"), ("drain", "recover")]
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_the_agent_does_not_approve_while_a_handler_runs(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        does.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event())
        assert does.running == 1
        assert harness.endpoint.approved == []
        does.gate.set()
        await settled()
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_a_failure_holds_the_approval_and_the_other_handlers_still_run(tmp_path: Path) -> None:
    async def main() -> None:
        failing, other = Doing(lambda task: Never("no")), Doing()
        harness = AgentHarness(tmp_path, handler("drain", failing), handler("stop", other))
        harness.start()
        await harness.show(event())
        assert other.calls == [(PREPARE, "A", 1)]
        assert harness.endpoint.approved == []
        assert "not approved: drain failed" in harness.said
        await harness.show()
        assert failing.calls[-1] == (RECOVER, "A", 1)
        await harness.stop()

    play(main())


class Notice(Doing):
    """A notifying handler that records its tasks."""

    def __init__(self) -> None:
        super().__init__(self._kept)
        self.told: list[tuple[str, str]] = []

    def _kept(self, task: Task) -> Outcome:
        self.told.append((task.side.value, task.failure))
        return Ready()


@pytest.mark.parametrize(
    ("on_failure", "shown", "side"),
    [
        (OnFailure.HOLD, event(), "held"),
        (OnFailure.CONTINUE, event(), "failed"),
        (OnFailure.HOLD, started(), "failed"),  # too late to approve
    ],
)
def test_a_failure_is_notified_once_over_restarts_of_the_agent(
    tmp_path: Path, on_failure: OnFailure, shown: Event, side: str
) -> None:
    async def main() -> None:
        notice, others = Notice(), Notice()
        freezes = HandlerFilter(types=(EventType.FREEZE,))
        harness = AgentHarness(
            tmp_path,
            handler("admin", notice, kind="notify"),
            handler("drain", Doing(lambda task: Never("no room")), on_failure=on_failure),
            handler("stop", Doing(lambda task: Never("no luck")), on_failure=OnFailure.CONTINUE),
            handler("others", others, kind="notify", when=freezes),
        )
        harness.start()
        await harness.show(shown)
        for _ in range(2):
            await harness.stop()
            harness.start()
            await harness.show(shown)
        assert notice.told == [("prepare", ""), (side, "drain: no room")]
        assert others.told == []
        await harness.show()
        assert notice.told[2:] == [("recover", "drain: no room; stop: no luck")]
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_a_held_event_that_starts_is_not_notified_again(tmp_path: Path) -> None:
    async def main() -> None:
        notice = Notice()
        harness = AgentHarness(
            tmp_path,
            handler("admin", notice, kind="notify"),
            handler("drain", Doing(lambda task: Never("no room"))),
        )
        harness.start()
        await harness.show(event())
        await harness.show(started())
        assert notice.told == [("prepare", ""), ("held", "drain: no room")]
        await harness.stop()
        harness.start()
        await harness.show(started())
        assert notice.told[2:] == []
        await harness.stop()

    play(main())


def test_an_undelivered_notification_delays_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        def answer(task: Task) -> Outcome:
            return Again("no mail server", 3600.0) if task.side is Side.HELD else Ready()

        mail, later = Doing(answer), Doing()
        harness = AgentHarness(
            tmp_path,
            handler("admin", mail, kind="notify", timeout=7200.0),
            handler("drain", Doing(lambda task: Never("no room"))),
            handler("stop", later),
        )
        harness.start()
        await harness.show(event())
        assert later.calls == [(PREPARE, "A", 1)]
        assert (Side.HELD, "A", 1) in mail.calls
        await harness.show()
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_a_failure_with_continue_holds_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        failing = handler("drain", Doing(lambda task: Never("no")), on_failure=OnFailure.CONTINUE)
        harness = AgentHarness(tmp_path, failing)
        harness.start()
        await harness.show(event())
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_a_handler_may_ask_for_another_try(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing(lambda task: Ready() if task.attempt == 3 else Again("not yet", 0.0))
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event())
        for _ in range(5):
            await settled()
        assert does.calls == [(PREPARE, "A", 1), (PREPARE, "A", 2), (PREPARE, "A", 3)]
        await harness.stop()

    play(main())


def test_after_the_start_nothing_is_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing(lambda task: Again("not yet", 0.0))
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(started())
        assert does.calls == [(PREPARE, "A", 1)]
        assert any("and the event has started" in line for line in harness.said)
        await harness.stop()

    play(main())


def test_a_handler_that_always_asks_for_another_try_ends_with_its_timeout(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        def answer(task: Task) -> Outcome:
            harness.monotonic += 20.0
            return Again("not yet") if task.side is PREPARE else Ready()

        stubborn, other = Doing(answer), Doing()
        harness = AgentHarness(
            tmp_path,
            handler("drain", stubborn, timeout=50.0, on_failure=OnFailure.CONTINUE),
            handler("stop", other),
        )
        harness.start()
        await harness.show(event())
        assert [attempt for _, _, attempt in stubborn.calls] == [1, 2, 3]
        assert other.calls == [(PREPARE, "A", 1)]
        assert (
            "drain: prepare failed: not yet, and another try would be after its timeout of 50 s"
            in harness.said
        )
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_a_restart_of_the_agent_does_not_extend_a_handlers_timeout(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing(lambda task: Again("not yet"))
        harness = AgentHarness(tmp_path, handler("drain", does, timeout=50.0, retry=20.0))
        harness.start()
        await harness.show(event())
        await harness.stop()
        assert does.calls == [(PREPARE, "A", 1)]
        harness.now = NOW + timedelta(seconds=40)
        harness.start()
        await harness.show(event())
        assert does.calls == [(PREPARE, "A", 1), (PREPARE, "A", 2)]
        assert (
            "drain: prepare failed: not yet, and another try would be after its timeout of 50 s"
            in harness.said
        )
        await harness.stop()

    play(main())


def test_any_error_of_a_plug_in_is_a_failure(tmp_path: Path) -> None:
    async def main() -> None:
        def crash(task: Task) -> Outcome:
            raise ZeroDivisionError("by nothing")

        harness = AgentHarness(tmp_path, handler("drain", Doing(crash)))
        harness.start()
        await harness.show(event())
        assert any(
            "drain: prepare failed: it failed: ZeroDivisionError: by nothing" in each for each in harness.said
        )
        await harness.show()
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_handlers_prepare_at_once_for_an_unknown_status_which_is_never_approved(tmp_path: Path) -> None:
    async def main() -> None:
        early, late = Doing(), Doing()
        harness = AgentHarness(
            tmp_path,
            handler("early", early, when=HandlerFilter(max_seconds_left=60.0)),
            handler("late", late, when=HandlerFilter(min_seconds_left=3600.0)),
        )
        harness.start()
        odd = event(status="Pondered")
        await harness.show(odd)
        assert early.calls == late.calls == [(PREPARE, "A", 1)]
        assert harness.endpoint.approved == []
        assert any("the status 'Pondered' is unknown" in line for line in harness.warned)
        assert harness.context.metrics.counted("unreadable", "status") == 1
        await harness.show(odd)
        assert len(early.calls) == 1
        await harness.show()
        assert early.calls[-1] == late.calls[-1] == (RECOVER, "A", 1)
        await harness.stop()

    play(main())


def test_a_status_that_becomes_unknown_does_not_end_the_event(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does), approve=ApprovePolicy.NEVER)
        harness.start()
        await harness.show(event())
        await harness.show(event(status="Pondered"))
        await harness.show(started())
        assert does.calls == [(PREPARE, "A", 1)]
        await harness.stop()

    play(main())


def test_an_unreadable_event_is_logged_and_counted_once_and_not_over(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        odd = UnreadableEvent(why="NotBefore is 'tomorrow', not a time", id="A")
        other = event("B", type=EventType.FREEZE)
        await harness.show(event())
        for _ in range(2):
            await harness.show(other, unreadable=[odd])
        assert does.calls == [(PREPARE, "A", 1), (PREPARE, "B", 1)]
        assert [line for line in harness.warned if "unreadable" in line] == [
            "skipped an unreadable event: NotBefore is 'tomorrow', not a time"
        ]
        assert harness.context.metrics.counted("unreadable", "event") == 1
        await harness.show(other)
        assert (RECOVER, "A", 1) not in does.calls, "B needs it still"
        await harness.show()
        assert does.calls[-1] == (RECOVER, "B", 1)
        await harness.stop()

    play(main())


def test_the_journal_redacts_secrets_in_a_plug_ins_reason(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path, handler("drain", Doing(lambda task: Never("no hunter22"))))
        harness.config = replace(harness.config, secrets=frozenset({"hunter22"}))
        harness.start()
        await harness.show(event())
        attempt = harness.journal.tracked_events["A"].attempt(PREPARE, "drain")
        assert attempt is not None
        assert attempt.why == "no ***"
        assert "hunter22" not in (tmp_path / "agent.journal").read_text()
        await harness.stop()

    play(main())


def test_a_handler_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        does.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", does, timeout=0.0))
        harness.start()
        await harness.show(event())
        assert does.running == 0
        assert any("it did not finish within 0 s and was stopped" in line for line in harness.said)
        await harness.stop()

    play(main())


def test_when_an_event_vanishes_its_handlers_stop_and_recover(tmp_path: Path) -> None:
    async def main() -> None:
        does, later = Doing(), Doing()
        does.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", does), handler("stop", later))
        harness.start()
        await harness.show(event())
        assert does.running == 1
        await harness.show()
        assert [side for side, *_ in does.calls] == [PREPARE, RECOVER]
        assert does.running == 1, "one is ended, the other has begun"
        does.gate.set()
        await settled()
        assert later.calls == []
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_an_event_without_this_machines_name_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event(resources=("web-0", "web-1")))
        await harness.show(event(resources=("web-1",)))
        assert [side for side, *_ in does.calls] == [PREPARE, RECOVER]
        await harness.stop()

    play(main())


def test_the_agent_recovers_after_its_own_reboot(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event())
        await harness.stop()
        harness.start()
        await harness.show()
        assert [side for side, *_ in does.calls] == [PREPARE, RECOVER]
        await harness.stop()

    play(main())


def test_after_a_restart_only_unfinished_handlers_run_again(tmp_path: Path) -> None:
    async def main() -> None:
        first, second = Doing(), Doing()
        second.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", first), handler("stop", second))
        harness.start()
        await harness.show(event())
        await harness.stop()
        second.gate.set()
        harness.start()
        await harness.show(event())
        assert first.calls == [(PREPARE, "A", 1)]
        assert second.calls == [(PREPARE, "A", 1), (PREPARE, "A", 2)]
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_recovery_resumes_before_the_first_document(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event())
        does.gate.clear()
        await harness.show()
        await harness.stop()
        does.gate.set()
        harness.start()
        harness.watcher.resume()
        await settled()
        assert does.calls == [(PREPARE, "A", 1), (RECOVER, "A", 1), (RECOVER, "A", 2)]
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_nothing_begins_and_nothing_is_approved_before_the_first_document(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        does.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", does), handler("stop", Doing()))
        harness.start()
        await harness.show(event())
        await harness.stop()
        does.gate.set()
        harness.start()
        harness.watcher.resume()
        await settled()
        assert does.calls == [(PREPARE, "A", 1)]
        assert harness.endpoint.approved == []
        await harness.show(event())
        assert does.calls == [(PREPARE, "A", 1), (PREPARE, "A", 2)]
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_an_approval_is_not_sent_again_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path)
        harness.start()
        await harness.show(event())
        await harness.stop()
        harness.start()
        await harness.show(event())
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_a_handler_that_is_too_early_waits_and_follows_a_new_not_before(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        late = handler("drain", does, when=HandlerFilter(max_seconds_left=60))
        harness = AgentHarness(tmp_path, late)
        harness.start()
        await harness.show(event())
        assert does.calls == []
        assert harness.endpoint.approved == []
        await harness.show(event(not_before=NOW + timedelta(seconds=30)))
        assert does.calls == [(PREPARE, "A", 1)]
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_a_handler_without_enough_time_runs_if_the_event_moves(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        long = handler("copy", does, when=HandlerFilter(min_seconds_left=3600))
        harness = AgentHarness(tmp_path, long, approve=ApprovePolicy.NEVER)
        harness.start()
        await harness.show(event())
        assert does.calls == []
        await harness.show(event(not_before=NOW + timedelta(hours=2)))
        assert does.calls == [(PREPARE, "A", 1)]
        await harness.stop()

    play(main())


def test_only_handlers_that_have_begun_recover(tmp_path: Path) -> None:
    async def main() -> None:
        other = Doing()
        harness = AgentHarness(
            tmp_path, handler("evict", other, when=HandlerFilter(types=(EventType.PREEMPT,)))
        )
        harness.start()
        await harness.show(event())
        await harness.show()
        assert other.calls == []
        await harness.stop()

    play(main())


def test_a_preparation_for_two_events_is_undone_once(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event("A"), event("B"))
        await harness.show(event("B"))
        assert [call for call in does.calls if call[0] is RECOVER] == []
        assert list(harness.journal.tracked_events) == ["B"]
        await harness.show()
        assert [call for call in does.calls if call[0] is RECOVER] == [(RECOVER, "B", 1)]
        await harness.stop()

    play(main())


def test_a_handler_prepares_for_an_event_after_its_recovery_from_another(tmp_path: Path) -> None:
    async def main() -> None:
        order: list[str] = []
        coming_back = asyncio.Event()

        class Slow(Doing):
            async def recover(self, task: Task) -> Outcome:
                await coming_back.wait()
                order.append(f"recovered {task.event.id}")
                return Ready()

            async def prepare(self, task: Task) -> Outcome:
                order.append(f"prepared {task.event.id}")
                return Ready()

        harness = AgentHarness(tmp_path, handler("drain", Slow()))
        harness.start()
        await harness.show(event("A"))
        await harness.show()
        await harness.show(event("B"))
        assert order == ["prepared A"]
        coming_back.set()
        await settled()
        assert order == ["prepared A", "recovered A", "prepared B"]
        await harness.stop()

    play(main())


def test_an_event_that_is_listed_again_is_new_again(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        for shown in ((event(),), (), (event(),), ()):
            await harness.show(*shown)
        assert [side for side, *_ in does.calls] == [PREPARE, RECOVER, PREPARE, RECOVER]
        await harness.stop()

    play(main())


def test_a_restarted_incarnation_does_not_end_an_event(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event(), incarnation=7)
        await harness.show(incarnation=1)
        await harness.show(event(), incarnation=2)
        assert [side for side, *_ in does.calls] == [PREPARE]
        await harness.show(incarnation=1)
        harness.monotonic += RESTART_SECONDS
        await harness.show(incarnation=2)
        assert [side for side, *_ in does.calls] == [PREPARE, RECOVER]
        await harness.stop()

    play(main())


def test_one_document_without_the_event_undoes_and_begins_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        first, second = Doing(), Doing()
        first.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", first), handler("stop", second), settle=5.0)
        harness.start()
        await harness.show(event())
        await harness.show()
        assert any("Reboot is missing from the document" in line for line in harness.said)
        first.gate.set()
        await settled()
        assert (first.calls, second.calls) == ([(PREPARE, "A", 1)], [])
        assert harness.endpoint.approved == []
        await harness.show(event())
        assert (first.calls, second.calls) == ([(PREPARE, "A", 1)], [(PREPARE, "A", 1)])
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_two_documents_without_the_event_end_it(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does), settle=5.0)
        harness.start()
        await harness.show(started())
        await harness.show()
        assert [side for side, *_ in does.calls] == [PREPARE]
        await harness.show(event("B", resources=("web-1",)))
        assert [side for side, *_ in does.calls] == [PREPARE, RECOVER]
        await harness.stop()

    play(main())


def test_a_restarted_machine_recovers_at_the_first_document_without_the_event(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does), settle=5.0)
        harness.start()
        await harness.show(event())
        await harness.stop()
        harness.now += timedelta(minutes=20)
        harness.up_seconds = 60.0
        harness.start()
        await harness.show()
        assert [side for side, *_ in does.calls] == [PREPARE, RECOVER]
        await harness.stop()

    play(main())


def test_the_more_urgent_event_is_prepared_first(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        later, soon = event("A"), event("B", not_before=NOW + timedelta(seconds=30))
        await harness.show(later, soon, started("C"))
        assert [id_ for _, id_, _ in does.calls] == ["C", "B", "A"]
        await harness.stop()

    play(main())


def test_the_most_urgent_waiter_gets_the_next_turn(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        does.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        listed = [event("A", not_before=NOW + timedelta(days=7))]
        for id_, left in (("B", timedelta(hours=1)), ("C", timedelta(seconds=30))):
            await harness.show(*listed)
            listed.append(event(id_, not_before=NOW + left))
        await harness.show(*listed)
        assert [id_ for _, id_, _ in does.calls] == ["A"]
        does.gate.set()
        await settled()
        assert [id_ for _, id_, _ in does.calls] == ["A", "C", "B"]
        await harness.stop()

    play(main())


def test_a_cancelled_waiter_takes_no_turn() -> None:
    async def main() -> None:
        turns, had = Turns(), list[str]()

        async def take(name: str) -> None:
            async with turns.turn(lambda: 0.0):
                had.append(name)
                await asyncio.sleep(0)

        async with turns.turn(lambda: 0.0):
            tasks = [asyncio.create_task(take(name)) for name in "abc"]
            await settled()
            tasks[0].cancel()
        # b gets the turn and is cancelled at the same moment.
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert had == ["c"]
        async with turns.turn(lambda: 0.0):
            pass

    play(main())


@pytest.mark.parametrize("config_says_so", [False, True])
def test_an_event_of_an_unknown_type_is_prepared_and_approved_only_if_configured(
    tmp_path: Path, config_says_so: bool
) -> None:
    async def main() -> None:
        does = Doing()
        meant = HandlerFilter(types=(EventType.REBOOT,))
        harness = AgentHarness(tmp_path, handler("drain", does, when=meant), approve_unknown=config_says_so)
        harness.start()
        await harness.show(event(type="Teleport"))
        assert does.calls == [(PREPARE, "A", 1)]
        assert harness.endpoint.approved == (["A"] if config_says_so else [])
        await harness.stop()

    play(main())


def test_a_handler_that_left_the_config_is_logged(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path, handler("drain", Doing()))
        harness.start()
        await harness.show(event())
        harness.watcher.reload(AgentHarness(tmp_path).config)
        await harness.show()
        assert any("drain: recover failed: it is no longer in the config" in line for line in harness.warned)
        assert "the event is over, but drain failed to recover" in harness.warned
        assert "recovered: the event is over" not in harness.said
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_a_new_handler_runs_for_a_listed_event(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, approve=ApprovePolicy.NEVER)
        harness.start()
        await harness.show(event())
        harness.watcher.reload(AgentHarness(tmp_path, handler("drain", does)).config)
        await settled()
        assert does.calls == [(PREPARE, "A", 1)]
        await harness.stop()

    play(main())


def test_the_second_machine_approves_if_the_first_does_not(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path, approver=Approver.FIRST)
        harness.start()
        both = event(resources=("a-0", "web-0"))
        await harness.show(both)
        assert harness.endpoint.approved == []
        harness.monotonic += 30.0
        await harness.show(event(resources=("a-0", "web-0"), description="still"))
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_only_user_events_are_approved(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path, approve=ApprovePolicy.USER_EVENTS)
        harness.start()
        await harness.show(event("A"), event("B", source=Source.USER))
        assert harness.endpoint.approved == ["B"]
        await harness.stop()

    play(main())


@pytest.mark.parametrize("fault", [EndpointUnavailable("no answer"), Closed("another endpoint was found")])
def test_an_undelivered_approval_is_logged_once_and_retried(tmp_path: Path, fault: GuestError) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path)
        harness.endpoint.fault = fault
        harness.start()
        await harness.show(event())
        harness.endpoint.fault = None
        await harness.show(event(description="moved"))
        assert harness.endpoint.approved == ["A"]
        assert len([line for line in harness.said if "the approval cannot be delivered" in line]) == 1
        await harness.stop()

    play(main())


def noted_pauses(monkeypatch: pytest.MonkeyPatch, *, longest: float) -> list[float]:
    """Record the pauses, and skip the short ones."""
    pauses: list[float] = []
    pause = EventCare.pause

    async def noting(care: EventCare, seconds: float | None) -> None:
        if seconds is not None:
            pauses.append(seconds)
        await pause(care, 0.0 if seconds is not None and seconds < longest else seconds)

    monkeypatch.setattr(EventCare, "pause", noting)
    return pauses


def test_a_refused_approval_is_logged_once_and_sent_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        pauses = noted_pauses(monkeypatch, longest=REFUSED_SECONDS)
        harness = AgentHarness(tmp_path)
        harness.endpoint.fault = EndpointRefused("403: no")
        harness.start()
        await harness.show(event())
        assert pauses == [REFUSED_SECONDS]
        await harness.show(event(description="moved"))
        assert harness.said.count("the endpoint refused the approval: 403: no") == 1
        harness.endpoint.fault = None
        await harness.show(event(description="moved again"))
        assert harness.endpoint.approved == ["A"]
        await harness.stop()

    play(main())


def test_a_recovery_is_retried_after_increasing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        does = Doing(lambda task: Ready() if task.side is PREPARE or task.attempt == 7 else Again("not yet"))
        harness = AgentHarness(tmp_path, handler("drain", does, retry=5.0))
        harness.start()
        await harness.show(event())
        pauses = noted_pauses(monkeypatch, longest=600.0)
        await harness.show()
        # The event loop runs in between, however short the pauses are.
        async with asyncio.timeout(60):
            while harness.journal.tracked_events:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0)
        assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
        await harness.stop()

    play(main())


def test_a_retried_recovery_does_not_delay_the_others(tmp_path: Path) -> None:
    async def main() -> None:
        mail = Doing(
            lambda task: Ready() if task.side is PREPARE or task.attempt == 2 else Again("no mail server")
        )
        drain = Doing()
        harness = AgentHarness(
            tmp_path, handler("drain", drain), handler("mail", mail, drains=False, retry=50.0)
        )
        harness.start()
        await harness.show(event())
        await harness.show()
        assert mail.calls[-1] == (RECOVER, "A", 1)
        assert drain.calls[-1] == (RECOVER, "A", 1)
        assert "mail: recover will try again: no mail server" in harness.warned
        assert draining(harness.journal.tracked_events, harness.config) == []
        harness.watcher.reload(harness.config)  # a change wakes the waiting recovery
        await settled()
        assert mail.calls[-1] == (RECOVER, "A", 2)
        assert harness.journal.tracked_events == {}
        assert "recovered: the event is over" in harness.said
        await harness.stop()

    play(main())


def test_a_slow_notification_does_not_delay_recovery(tmp_path: Path) -> None:
    async def main() -> None:
        mail, drain = Doing(), Doing()
        harness = AgentHarness(tmp_path, handler("drain", drain), handler("mail", mail, kind="notify"))
        harness.start()
        await harness.show(event())
        mail.gate.clear()
        await harness.show()
        assert (mail.running, drain.calls[-1]) == (1, (RECOVER, "A", 1))
        assert "A" in harness.journal.tracked_events
        mail.gate.set()
        await settled()
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_an_unfinished_recovery_still_drains(tmp_path: Path) -> None:
    async def main() -> None:
        balancer = Doing(lambda task: Ready() if task.side is PREPARE else Again("away"))
        harness = AgentHarness(tmp_path, handler("balancer", balancer, retry=50.0))
        harness.start()
        await harness.show(event())
        await harness.show()
        assert draining(harness.journal.tracked_events, harness.config) != []
        await harness.stop()

    play(main())


@pytest.mark.parametrize(("kind", "seconds"), [("exec", 24 * 3600), ("notify", 300)])
def test_a_recovery_is_given_up_after_its_limit_over_restarts(
    tmp_path: Path, kind: str, seconds: float
) -> None:
    async def main() -> None:
        does = Doing(lambda task: Ready() if task.side is PREPARE else Again("away"))
        harness = AgentHarness(tmp_path, handler("drain", does, kind=kind, retry=1.0))
        harness.start()
        await harness.show(event())
        await harness.show()
        harness.now += timedelta(seconds=seconds - 2)
        await harness.stop()
        harness.start()
        harness.watcher.resume()
        await settled()
        assert list(harness.journal.tracked_events) == ["A"]
        harness.now += timedelta(seconds=2)
        harness.watcher.reload(harness.config)
        await settled()
        assert (
            f"drain: recover failed: away, and another try would be after its limit of {seconds} s"
            in " ".join(harness.warned)
        )
        assert "the event is over, but drain failed to recover" in harness.warned
        assert "recovered: the event is over" not in harness.said
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())


def test_a_handler_works_on_one_event_at_a_time(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        does.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event("A"), event("B"))
        assert does.calls == [(PREPARE, "A", 1)]
        does.gate.set()
        await settled()
        assert does.calls == [(PREPARE, "A", 1), (PREPARE, "B", 1)]
        assert harness.endpoint.approved == ["A", "B"]
        await harness.stop()

    play(main())


def test_after_a_restart_the_running_handler_has_the_turn(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing(lambda task: Again("not yet", 3600.0))
        harness = AgentHarness(tmp_path, handler("drain", does, timeout=7200.0))
        harness.start()
        await harness.show(event("A"))
        does.gate.clear()
        await harness.show(event("A"), event("B"))
        assert does.calls == [(PREPARE, "A", 1), (PREPARE, "B", 1)]
        await harness.stop()
        harness.start()
        await harness.show(event("A"), event("B"))
        assert does.calls[2:] == [(PREPARE, "B", 2)]
        await harness.stop()

    play(main())


def test_an_event_that_leaves_before_its_turn_has_nothing_to_undo(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        does.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event("A"), event("B"))
        await harness.show(event("A"))
        assert list(harness.journal.tracked_events) == ["A"]
        does.gate.set()
        await harness.show()
        assert does.calls == [(PREPARE, "A", 1), (RECOVER, "A", 1)]
        await harness.stop()

    play(main())


def test_an_event_that_leaves_does_not_undo_the_next_preparation(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        does.gate.clear()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        await harness.show(event("A"), event("B"))
        await harness.show(event("B"))
        does.gate.set()
        await settled()
        assert harness.endpoint.approved == ["B"]
        sides = [(side, id_) for side, id_, _ in does.calls]
        assert (RECOVER, "A") not in sides[sides.index((PREPARE, "B")) :]
        await harness.stop()

    play(main())


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, handler("drain", does))
        harness.start()
        harness.context.dry = True
        await harness.show(event())
        await harness.show()
        assert does.calls == []
        assert harness.endpoint.approved == []
        assert "drain: prepare ready: would have: would prepare" in harness.said
        assert "would have approved the event" in harness.said
        await harness.stop()

    play(main())


def test_a_dry_run_removes_no_files_of_another_agent(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path, handler("drain", Doing()))
        harness.start()
        harness.context.dry = True
        left = tmp_path / "runs" / f"{file_name('A', 'drain', PREPARE)}.result"
        left.parent.mkdir()
        left.touch()
        await harness.show(event())
        await harness.show()
        assert "recovered: the event is over" in harness.said
        assert left.exists()
        await harness.stop()

    play(main())


def test_an_error_in_a_comparison_is_logged_once_and_does_not_end_the_watch(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path, handler("drain", Doing()))

        def broken(event: Event) -> float | None:
            raise OverflowError("the end of all time")

        sound, harness.endpoint.seconds_left = harness.endpoint.seconds_left, broken  # type: ignore[method-assign]
        harness.start()
        await harness.show(event("A"))
        await harness.show(event("A"), event("B"))
        assert len([line for line in harness.said if "OverflowError: the end of all time" in line]) == 1
        harness.endpoint.seconds_left = sound  # type: ignore[method-assign]
        await harness.show(event("A"), event("B"), event("C"))
        assert harness.endpoint.approved == ["A", "B", "C"]
        await harness.stop()

    play(main())


def test_every_attempt_has_ended_when_an_event_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path, handler("drain", Doing()), handler("stop", Doing()))
        harness.start()
        await harness.show(event())
        await harness.show()
        kinds = [type(entry) for entry in harness.entries]
        assert kinds.count(Ended) == 4
        assert kinds[-1] is Over
        await harness.stop()

    play(main())


def test_a_waiting_handler_is_not_retried_after_the_event(tmp_path: Path) -> None:
    async def main() -> None:
        does = Doing(lambda task: Again("not yet") if task.side is PREPARE else Ready())
        harness = AgentHarness(tmp_path, handler("drain", does, retry=3600.0, timeout=7200.0))
        harness.start()
        await harness.show(event())
        assert any("drain: prepare will try again" in line for line in harness.said)
        await harness.show()
        assert does.calls == [(PREPARE, "A", 1), (RECOVER, "A", 1)]
        assert harness.journal.tracked_events == {}
        await harness.stop()

    play(main())
