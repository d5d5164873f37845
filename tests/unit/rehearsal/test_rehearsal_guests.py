"""When a guest has recovered, and the order of the timeline."""

import asyncio
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from forewarn.clock import ManualClock, monotonic
from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.rehearsal.guest_programs import GuestProgram, GuestRecovery, StatusReport
from forewarn.rehearsal.scenario import GuestCommand, Scenario
from forewarn.rehearsal.scenario_file import default_fleet, read_scenario
from forewarn.rehearsal.timeline import Rank, ScenarioClock, Timeline

BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


@dataclass
class Program:
    runs: bool = True
    status: StatusReport | None = None


def account(*, polled: float = 50, answered: float = 50, listed: tuple[str, ...] = ()) -> GuestAccount:
    return GuestAccount(
        machine="web-0", polls=1, last_poll=after(polled), last_sound=after(answered), listed=listed
    )


def recovery(guest: GuestAccount, program: Program | None) -> GuestRecovery:
    return GuestRecovery(guest, program, events=["E1"], end=after(60))


def test_a_guest_without_reports_has_recovered_when_it_polls_again() -> None:
    guest = account()
    followed = recovery(guest, Program())
    assert not followed.over()
    guest.last_poll = guest.last_sound = after(61)  # it learns of the end, and recovers
    assert not followed.over()
    guest.last_poll = after(70)
    assert followed.over()


def test_a_guest_has_not_recovered_while_its_last_answer_has_the_event() -> None:
    assert not recovery(account(polled=61, answered=61, listed=("E1",)), None).over()


def test_a_guest_with_reports_has_recovered_when_it_has_no_open_event() -> None:
    program = Program(status=StatusReport(1, monotonic()))
    guest = account(polled=61, answered=61)
    followed = recovery(guest, program)
    guest.last_poll = after(70)
    assert not followed.over()
    program.status = StatusReport(0, monotonic() + 1)
    assert followed.over()


def test_a_report_from_before_the_end_does_not_count() -> None:
    followed = recovery(account(polled=61, answered=61), Program(status=StatusReport(0, monotonic() - 1)))
    assert not followed.over()


def test_a_program_that_has_ended_is_not_awaited() -> None:
    assert recovery(account(), Program(runs=False)).over()


def scenario(fault: str) -> Scenario:
    text = f'[scenario]\nname = "mine"\n[[steps]]\nfault = {{ kind = "hang"{fault} }}\n'
    return read_scenario(text, default_fleet=default_fleet())


def test_only_a_guest_with_valid_answers_and_a_running_machine_is_awaited() -> None:
    followed, brief = recovery(account(), Program()), scenario(', for = "1m"')
    assert followed.worth_waiting(brief, gone=())
    assert not followed.worth_waiting(brief, gone=["web-0"])
    assert not followed.worth_waiting(scenario(""), gone=())
    assert followed.worth_waiting(scenario(', machines = ["web-1"]'), gone=())
    assert not recovery(account(), None).worth_waiting(brief, gone=())


TELLING = """
import os, socket
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
    told.sendto(b"STATUS=busy\\nX_FOREWARN_EVENTS=2", os.environ["NOTIFY_SOCKET"])
"""


def test_a_program_reports_as_to_systemd(tmp_path: Path) -> None:
    async def told() -> StatusReport | None:
        program = GuestProgram(
            GuestCommand(machine="web-0", command=(sys.executable, "-S", "-c", TELLING)),
            "http://127.0.0.1:1",
            note=lambda *_, **__: None,
            ended=lambda *_: ended.set(),
            socket_=tmp_path / "guest.socket",
        )
        ended = asyncio.Event()
        await program.start()
        await asyncio.wait_for(ended.wait(), 60)
        await program.stop()
        return program.status

    found = asyncio.run(told())
    assert found is not None
    assert found.events == 2


# Timelines.


def test_a_timeline_shows_late_notes_in_order() -> None:
    clock = ScenarioClock(ManualClock(BEGAN).now)
    clock.begin()
    shown: list[tuple[float, str]] = []
    timeline = Timeline(clock, lambda at, who, what: shown.append((at.total_seconds(), what)))
    timeline.note("web-0", "approves", at=after(20), rank=Rank.APPROVED)
    timeline.note("service", "is started", at=after(20), rank=Rank.STARTED)
    timeline.note("web-0", "sees", at=after(10), rank=Rank.SEEN)
    timeline.note("service", "is announced", at=after(10), rank=Rank.ANNOUNCED)
    timeline.show(after(15))
    assert shown == [(10, "is announced"), (10, "sees")]
    timeline.note("web-0", "says something", at=after(16))
    timeline.show()
    assert shown[2:] == [(16, "says something"), (20, "approves"), (20, "is started")]


def test_a_timeline_never_goes_back() -> None:
    clock = ScenarioClock(ManualClock(BEGAN).now)
    clock.begin()
    shown: list[float] = []
    timeline = Timeline(clock, lambda at, who, what: shown.append(at.total_seconds()))
    timeline.note("service", "later", at=after(20))
    timeline.show()
    timeline.note("service", "before", at=after(19))
    timeline.show()
    assert shown == [20, 20]
