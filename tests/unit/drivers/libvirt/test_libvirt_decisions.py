"""Decisions of the libvirt driver from the view of a step."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from forewarn.control.driver import Failed, Running, Unknown
from forewarn.core.basic_types import HostName, OrderId, Work
from forewarn.drivers.libvirt import decisions
from forewarn.drivers.libvirt.decisions import Decision, Finished, Operation
from forewarn.drivers.libvirt.domain_view import (
    BackgroundCall,
    DomainJob,
    DomainMark,
    DomainState,
    DomainView,
    StepView,
)
from forewarn.drivers.libvirt.options import LibvirtOptions

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OPTIONS = LibvirtOptions(
    freeze_for=timedelta(seconds=5),
    shutdown_for=timedelta(seconds=60),
    reboot_for=timedelta(seconds=120),
    migrate_for=timedelta(seconds=600),
)
RUNS, PAUSED, OFF = (
    DomainView(state=DomainState.RUNNING, run=7),
    DomainView(state=DomainState.PAUSED, run=7),
    DomainView(state=DomainState.OFF),
)
HELD = replace(PAUSED, migrating=True)
ENDED = BackgroundCall(running=False)


def mark(work: Work, *, run: int | None = None, boot: str = "", back: str = "", **ago: float) -> DomainMark:
    """Return a mark with times in seconds before now."""
    times = {name: NOW - timedelta(seconds=seconds) for name, seconds in ago.items()}
    target = HostName("kvm02") if work in (Work.FREEZE, Work.REDEPLOY) else None
    named = {"order": OrderId("O"), "machine": "m", "attempt": 1, "work": work, "target": target}
    return DomainMark(**{"begun": NOW, **named, "run": run, "boot": boot, "back": back, **times})  # type: ignore[arg-type]


def mine(seen: DomainView, of: DomainMark) -> DomainView:
    return replace(seen, mark=of)


def decided(
    of: DomainMark, sight: StepView, *, moves: bool = False, options: LibvirtOptions = OPTIONS
) -> Decision:
    return decisions.decider_for(of.work, moves=moves)(of, sight, now=NOW, options=options)


@pytest.mark.parametrize(
    ("seen", "times", "next_"),
    [
        (RUNS, {}, Operation.SUSPEND),
        (RUNS, {"asked": 1}, Operation.SUSPEND),  # a crash came between the mark and the operation
        (PAUSED, {"asked": 1, "away": 1}, Running(NOW + timedelta(seconds=4))),
        (PAUSED, {"asked": 6, "away": 5}, Operation.RESUME),
        (PAUSED, {"asked": 6}, Operation.RESUME),
        (RUNS, {"asked": 6, "away": 5}, Finished()),
    ],
)
def test_a_freeze_suspends_and_resumes_after_freeze_for(
    seen: DomainView, times: dict[str, float], next_: Decision
) -> None:
    assert decided(mark(Work.FREEZE, **times), StepView(source=seen)) == next_


@pytest.mark.parametrize(
    ("seen", "why"), [(None, "not have it"), (OFF, "it is off"), (PAUSED, "not by forewarn")]
)
def test_a_domain_that_does_not_run_is_not_frozen(seen: DomainView | None, why: str) -> None:
    answer = decided(mark(Work.FREEZE), StepView(source=seen))
    assert isinstance(answer, Failed)
    assert why in answer.why


@pytest.mark.parametrize(
    ("work", "seen", "times", "next_"),
    [
        (Work.EVICT, RUNS, {}, Operation.SHUT_DOWN),
        (Work.EVICT, RUNS, {"asked": 59.5}, Running(NOW + timedelta(seconds=0.5))),
        (Work.EVICT, RUNS, {"asked": 10}, Running(NOW + decisions.CHECK_AGAIN)),
        (Work.EVICT, RUNS, {"asked": 60}, Operation.POWER_OFF),
        (Work.EVICT, PAUSED, {"asked": 60}, Operation.POWER_OFF),
        (Work.EVICT, OFF, {"asked": 5}, Finished()),
        (Work.TERMINATE, RUNS, {}, Operation.SHUT_DOWN),
        (Work.TERMINATE, OFF, {"asked": 5}, Finished()),
        (Work.TERMINATE, None, {"asked": 5}, Finished()),
    ],
)
def test_a_guest_that_does_not_shut_down_is_powered_off(
    work: Work, seen: DomainView | None, times: dict[str, float], next_: Decision
) -> None:
    assert decided(mark(work, **times), StepView(source=seen)) == next_


def test_a_terminated_domain_is_undefined_only_with_destroy() -> None:
    destroying = LibvirtOptions(destroy=True)
    assert (
        decided(mark(Work.TERMINATE, asked=5), StepView(source=OFF), options=destroying)
        is Operation.UNDEFINE_ON_SOURCE
    )
    assert decided(mark(Work.EVICT, asked=5), StepView(source=OFF), options=destroying) == Finished()


@pytest.mark.parametrize(
    ("boot", "times", "next_"),
    [
        ("", {}, Operation.REBOOT),
        ("a", {"asked": 5}, Running(NOW + decisions.CHECK_AGAIN)),  # it has not shut down yet
        ("", {"asked": 5}, Running(NOW + decisions.CHECK_AGAIN)),
        ("b", {"asked": 5}, Finished(since=NOW - timedelta(seconds=5))),
        ("a", {"asked": 120}, Operation.RESET),
        ("", {"asked": 130, "forced": 10}, Running(NOW + decisions.CHECK_AGAIN)),
        ("b", {"asked": 130, "forced": 10}, Finished(since=NOW - timedelta(seconds=130))),
    ],
)
def test_a_new_boot_id_proves_a_reboot(boot: str, times: dict[str, float], next_: Decision) -> None:
    of = mark(Work.REBOOT, run=7, boot="a", **times)
    assert decided(of, StepView(source=RUNS, boot=boot)) == next_


def test_a_guest_that_does_not_boot_after_its_reset_is_a_failure() -> None:
    answer = decided(mark(Work.REBOOT, run=7, boot="a", asked=240, forced=120), StepView(source=RUNS))
    assert isinstance(answer, Failed)
    assert "see its console" in answer.why


@pytest.mark.parametrize(
    ("seen", "times", "next_"),
    [
        (RUNS, {}, Operation.SHUT_DOWN),
        (RUNS, {"asked": 60}, Operation.POWER_OFF),
        (OFF, {"asked": 6}, Operation.START_ON_SOURCE),
        (replace(RUNS, run=8), {"asked": 6}, Finished(since=NOW - timedelta(seconds=6))),
    ],
)
def test_without_an_agent_a_new_run_proves_a_reboot(
    seen: DomainView, times: dict[str, float], next_: Decision
) -> None:
    assert decided(mark(Work.REBOOT, run=7, **times), StepView(source=seen)) == next_


def test_a_machine_is_undefined_on_its_source_before_it_starts_on_its_target() -> None:
    of = mark(Work.REDEPLOY, asked=10)
    there = mine(OFF, of)
    assert decided(of, StepView(source=RUNS), moves=True) == Running(NOW + decisions.CHECK_AGAIN)
    assert decided(of, StepView(source=OFF), moves=True) is Operation.DEFINE_ON_TARGET
    assert decided(of, StepView(source=OFF, target=there), moves=True) is Operation.UNDEFINE_ON_SOURCE
    assert decided(of, StepView(source=None, target=there), moves=True) is Operation.START_ON_TARGET
    over = Finished(on_target=True, since=NOW - timedelta(seconds=10))
    assert decided(of, StepView(source=None, target=mine(RUNS, of)), moves=True) == over
    assert (
        decided(of, StepView(source=OFF, target=mine(RUNS, of)), moves=True) is Operation.UNDEFINE_ON_SOURCE
    )


def test_a_moved_machine_is_interrupted_until_its_agent_answers() -> None:
    of = mark(Work.REDEPLOY, boot="a", asked=10, started=3)
    sight = StepView(source=None, target=mine(RUNS, of))
    over = Finished(on_target=True, since=NOW - timedelta(seconds=10))
    assert decided(of, sight, moves=True) == Running(NOW + decisions.CHECK_AGAIN)
    assert decided(of, replace(sight, boot="b"), moves=True) == over
    silent = replace(of, started=NOW - OPTIONS.reboot_for)
    assert decided(silent, StepView(source=None, target=mine(RUNS, silent)), moves=True) == over


def test_a_machine_that_was_started_again_on_its_source_is_powered_off() -> None:
    of = mark(Work.REDEPLOY, asked=70)
    assert decided(of, StepView(source=RUNS, target=mine(OFF, of)), moves=True) is Operation.POWER_OFF


@pytest.mark.parametrize(
    ("here", "there", "why"),
    [
        (None, None, "neither host has it"),
        (OFF, OFF, "another domain with its UUID"),
        (OFF, mine(OFF, replace(mark(Work.REDEPLOY), attempt=2)), "another domain with its UUID"),
        (RUNS, mine(RUNS, mark(Work.REDEPLOY)), "runs on both hosts"),
    ],
)
def test_an_impossible_move_fails_with_the_reason(
    here: DomainView | None, there: DomainView | None, why: str
) -> None:
    answer = decided(mark(Work.REDEPLOY), StepView(source=here, target=there), moves=True)
    assert isinstance(answer, Failed)
    assert why in answer.why


def test_a_machine_that_its_target_refuses_returns_to_its_source() -> None:
    of = mark(Work.REDEPLOY, asked=10, back="kvm02 does not take it: no space")
    there = mine(OFF, of)
    assert decided(of, StepView(source=None, target=there), moves=True) is Operation.DEFINE_ON_SOURCE
    assert decided(of, StepView(source=OFF, target=there), moves=True) is Operation.UNDEFINE_ON_TARGET
    assert decided(of, StepView(source=OFF), moves=True) is Operation.START_ON_SOURCE
    why = "kvm02 does not take it: no space; it runs on its source again"
    assert decided(of, StepView(source=RUNS), moves=True) == Failed(why)


@pytest.mark.parametrize(
    ("sight", "next_"),
    [
        (StepView(source=RUNS), Operation.MIGRATE),
        (
            StepView(source=replace(RUNS, job=DomainJob(progress=0.4)), target=HELD),
            Running(NOW + decisions.CHECK_AGAIN, progress=0.4),
        ),
        (StepView(source=RUNS, call=BackgroundCall(running=True)), Running(NOW + decisions.CHECK_AGAIN)),
        (StepView(source=None, target=HELD), Running(NOW + decisions.CHECK_AGAIN)),
        (StepView(source=None, target=RUNS), Finished(on_target=True)),
        (StepView(source=OFF, target=RUNS), Operation.UNDEFINE_ON_SOURCE),
        (StepView(source=HELD, target=RUNS, call=ENDED), Operation.UNDEFINE_ON_SOURCE),
        (StepView(source=HELD, target=None, call=ENDED), Operation.RESUME_ON_SOURCE),
        (StepView(source=RUNS, call=BackgroundCall(running=False, error="no room")), Failed("no room")),
    ],
)
def test_a_migration_is_decided_from_the_views_of_both_hosts(sight: StepView, next_: Decision) -> None:
    assert decided(mark(Work.FREEZE, asked=10), sight, moves=True) == next_


def test_a_domain_on_both_hosts_without_a_migration_is_left_alone() -> None:
    assert isinstance(
        decided(mark(Work.FREEZE, asked=10), StepView(source=RUNS, target=HELD), moves=True), Unknown
    )
    assert isinstance(
        decided(mark(Work.FREEZE, asked=90), StepView(source=None, target=HELD), moves=True), Unknown
    )
    assert isinstance(
        decided(mark(Work.FREEZE, asked=9), StepView(source=RUNS, target=RUNS), moves=True), Failed
    )


def test_a_migration_that_takes_too_long_is_aborted_and_not_repeated() -> None:
    late = mark(Work.FREEZE, asked=600)
    assert (
        decided(late, StepView(source=replace(RUNS, job=DomainJob()), target=HELD), moves=True)
        is Operation.ABORT_MIGRATION
    )
    for call in (None, BackgroundCall(running=False, error="job canceled by client")):
        answer = decided(late, StepView(source=RUNS, call=call), moves=True)
        assert isinstance(answer, Failed)
        assert "did not finish within 10 m" in answer.why


def test_a_machine_that_a_person_has_paused_is_not_migrated() -> None:
    assert isinstance(decided(mark(Work.FREEZE), StepView(source=PAUSED), moves=True), Failed)


def test_a_machine_starts_on_the_host_that_defines_it() -> None:
    of = mark(Work.START, begun=60)
    assert decided(of, StepView(source=None, target=OFF), moves=True) is Operation.START_ON_TARGET
    assert decided(of, StepView(source=None, target=RUNS), moves=True) == Finished(on_target=True)
    assert isinstance(decided(of, StepView(source=None, target=None), moves=True), Failed)
    assert isinstance(decided(of, StepView(source=None, target=PAUSED), moves=True), Failed)


def test_a_start_waits_for_a_host_that_is_starting_the_machine() -> None:
    assert isinstance(
        decided(mark(Work.START, begun=59), StepView(source=None, target=PAUSED), moves=True), Running
    )


def test_a_machine_of_a_lost_host_starts_elsewhere_unless_that_host_still_runs_it() -> None:
    of = mark(Work.RECOVER)
    assert decided(of, StepView(source=None), moves=True) is Operation.DEFINE_ON_TARGET
    assert decided(of, StepView(source=None, target=OFF), moves=True) is Operation.START_ON_TARGET
    answer = decided(of, StepView(source=RUNS), moves=True)
    assert isinstance(answer, Failed)
    assert "fence it" in answer.why


def test_a_recovered_machine_is_undefined_on_its_source_before_it_starts() -> None:
    recover = mark(Work.RECOVER)
    assert decided(recover, StepView(source=OFF, target=None), moves=True) is Operation.DEFINE_ON_TARGET
    assert decided(recover, StepView(source=OFF, target=OFF), moves=True) is Operation.UNDEFINE_ON_SOURCE
    assert decided(recover, StepView(source=None, target=OFF), moves=True) is Operation.START_ON_TARGET
    assert decided(recover, StepView(source=OFF, target=RUNS), moves=True) == Finished(on_target=True)


def test_a_migration_with_an_unknown_result_is_repeated() -> None:
    of = mark(Work.FREEZE, asked=20)
    assert decided(of, StepView(source=RUNS, call=ENDED), moves=True) == Operation.MIGRATE


AT_WORK = replace(RUNS, job=DomainJob())
EVERY_STATE = (None, RUNS, AT_WORK, PAUSED, HELD, OFF)
EVERY_CALL = (None, BackgroundCall(running=True), ENDED, BackgroundCall(running=False, error="no room"))


@pytest.mark.parametrize("asked", [1, 90, 900])
def test_every_view_of_a_migration_leads_to_one_running_domain(asked: int) -> None:
    of = mark(Work.FREEZE, asked=asked)
    for here, there, call in product(EVERY_STATE, EVERY_STATE, EVERY_CALL):
        following = decided(of, StepView(source=here, target=there, call=call), moves=True)
        runs_there = there is not None and there.state is DomainState.RUNNING
        holds_there = there is not None and there.active
        at_work = here is AT_WORK or (call is not None and call.running)
        may = {
            Finished(on_target=True): here is None and runs_there,
            Operation.UNDEFINE_ON_SOURCE: here in (PAUSED, HELD, OFF) and runs_there,
            Operation.MIGRATE: here is RUNS and not holds_there,
            Operation.RESUME_ON_SOURCE: here is HELD and not holds_there,
            Operation.ABORT_MIGRATION: here is AT_WORK,
        }
        if isinstance(following, Operation | Finished):
            assert may[following], (following, here, there, call)
            assert following is Operation.ABORT_MIGRATION or not at_work, (following, here, there, call)
