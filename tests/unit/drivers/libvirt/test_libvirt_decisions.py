"""What is next for a step on libvirt, from what was seen of it."""

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
    """Return a mark; times are said as seconds ago."""
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
        (RUNS, {"asked": 1}, Operation.SUSPEND),  # a crash came between the mark and the act
        (PAUSED, {"asked": 1, "away": 1}, Running(NOW + timedelta(seconds=4))),
        (PAUSED, {"asked": 6, "away": 5}, Operation.RESUME),
        (PAUSED, {"asked": 6}, Operation.RESUME),
        (RUNS, {"asked": 6, "away": 5}, Finished()),
    ],
)
def test_a_freeze_is_suspended_and_resumed_after_a_while(
    seen: DomainView, times: dict[str, float], next_: Decision
) -> None:
    assert decided(mark(Work.FREEZE, **times), StepView(source=seen)) == next_


@pytest.mark.parametrize(
    ("seen", "why"), [(None, "not have it"), (OFF, "it is off"), (PAUSED, "not by forewarn")]
)
def test_what_does_not_run_is_not_frozen(seen: DomainView | None, why: str) -> None:
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
def test_a_guest_is_asked_to_shut_down_and_powered_off_if_it_does_not(
    work: Work, seen: DomainView | None, times: dict[str, float], next_: Decision
) -> None:
    assert decided(mark(work, **times), StepView(source=seen)) == next_


def test_only_with_destroy_a_terminated_domain_is_undefined() -> None:
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
        ("a", {"asked": 5}, Running(NOW + decisions.CHECK_AGAIN)),  # it has not gone down yet
        ("", {"asked": 5}, Running(NOW + decisions.CHECK_AGAIN)),
        ("b", {"asked": 5}, Finished(since=NOW - timedelta(seconds=5))),
        ("a", {"asked": 120}, Operation.RESET),
        ("", {"asked": 130, "forced": 10}, Running(NOW + decisions.CHECK_AGAIN)),
        ("b", {"asked": 130, "forced": 10}, Finished(since=NOW - timedelta(seconds=130))),
    ],
)
def test_another_boot_of_which_the_agent_speaks_is_the_proof(
    boot: str, times: dict[str, float], next_: Decision
) -> None:
    of = mark(Work.REBOOT, run=7, boot="a", **times)
    assert decided(of, StepView(source=RUNS, boot=boot)) == next_


def test_a_guest_that_does_not_come_up_after_its_reset_has_failed() -> None:
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
def test_without_an_agent_a_new_run_from_being_off_is_the_proof(
    seen: DomainView, times: dict[str, float], next_: Decision
) -> None:
    assert decided(mark(Work.REBOOT, run=7, **times), StepView(source=seen)) == next_


def test_a_machine_is_never_started_elsewhere_before_its_host_has_forgotten_it() -> None:
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


def test_a_machine_that_has_moved_is_away_until_its_agent_answers_if_it_had_one() -> None:
    of = mark(Work.REDEPLOY, boot="a", asked=10, started=3)
    sight = StepView(source=None, target=mine(RUNS, of))
    over = Finished(on_target=True, since=NOW - timedelta(seconds=10))
    assert decided(of, sight, moves=True) == Running(NOW + decisions.CHECK_AGAIN)
    assert decided(of, replace(sight, boot="b"), moves=True) == over
    silent = replace(of, started=NOW - OPTIONS.reboot_for)
    assert decided(silent, StepView(source=None, target=mine(RUNS, silent)), moves=True) == over


def test_one_that_somebody_started_again_on_its_host_is_shut_down_again() -> None:
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
def test_a_move_that_makes_no_sense_fails_and_says_why(
    here: DomainView | None, there: DomainView | None, why: str
) -> None:
    answer = decided(mark(Work.REDEPLOY), StepView(source=here, target=there), moves=True)
    assert isinstance(answer, Failed)
    assert why in answer.why


def test_a_machine_that_its_target_does_not_take_runs_again_where_it_was() -> None:
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
def test_a_migration_is_seen_from_both_hosts(sight: StepView, next_: Decision) -> None:
    assert decided(mark(Work.FREEZE, asked=10), sight, moves=True) == next_


def test_what_both_hosts_hold_without_a_migration_is_left_to_libvirt_and_to_people() -> None:
    assert isinstance(
        decided(mark(Work.FREEZE, asked=10), StepView(source=RUNS, target=HELD), moves=True), Unknown
    )
    assert isinstance(
        decided(mark(Work.FREEZE, asked=90), StepView(source=None, target=HELD), moves=True), Unknown
    )
    assert isinstance(
        decided(mark(Work.FREEZE, asked=9), StepView(source=RUNS, target=RUNS), moves=True), Failed
    )


def test_a_migration_that_takes_too_long_is_broken_off_and_not_begun_again() -> None:
    late = mark(Work.FREEZE, asked=600)
    assert (
        decided(late, StepView(source=replace(RUNS, job=DomainJob()), target=HELD), moves=True)
        is Operation.ABORT_MIGRATION
    )
    for call in (None, BackgroundCall(running=False, error="job canceled by client")):
        answer = decided(late, StepView(source=RUNS, call=call), moves=True)
        assert isinstance(answer, Failed)
        assert "did not finish within 10 m" in answer.why


def test_a_machine_that_was_paused_by_others_is_not_migrated() -> None:
    assert isinstance(decided(mark(Work.FREEZE), StepView(source=PAUSED), moves=True), Failed)


def test_a_machine_starts_where_it_is_defined() -> None:
    of = mark(Work.START, begun=60)
    assert decided(of, StepView(source=None, target=OFF), moves=True) is Operation.START_ON_TARGET
    assert decided(of, StepView(source=None, target=RUNS), moves=True) == Finished(on_target=True)
    assert isinstance(decided(of, StepView(source=None, target=None), moves=True), Failed)
    assert isinstance(decided(of, StepView(source=None, target=PAUSED), moves=True), Failed)


def test_a_machine_that_its_host_is_just_starting_is_waited_for() -> None:
    assert isinstance(
        decided(mark(Work.START, begun=59), StepView(source=None, target=PAUSED), moves=True), Running
    )


def test_a_machine_of_a_lost_host_is_defined_and_started_elsewhere_unless_that_still_runs_it() -> None:
    of = mark(Work.RECOVER)
    assert decided(of, StepView(source=None), moves=True) is Operation.DEFINE_ON_TARGET
    assert decided(of, StepView(source=None, target=OFF), moves=True) is Operation.START_ON_TARGET
    answer = decided(of, StepView(source=RUNS), moves=True)
    assert isinstance(answer, Failed)
    assert "fence it" in answer.why


def test_a_recovered_machine_is_undefined_where_it_was_before_it_is_started() -> None:
    recover = mark(Work.RECOVER)
    assert decided(recover, StepView(source=OFF, target=None), moves=True) is Operation.DEFINE_ON_TARGET
    assert decided(recover, StepView(source=OFF, target=OFF), moves=True) is Operation.UNDEFINE_ON_SOURCE
    assert decided(recover, StepView(source=None, target=OFF), moves=True) is Operation.START_ON_TARGET
    assert decided(recover, StepView(source=OFF, target=RUNS), moves=True) == Finished(on_target=True)


def test_a_migration_that_was_not_heard_of_any_more_is_begun_again() -> None:
    of = mark(Work.FREEZE, asked=20)
    assert decided(of, StepView(source=RUNS, call=ENDED), moves=True) == Operation.MIGRATE


AT_WORK = replace(RUNS, job=DomainJob())
EVERY_STATE = (None, RUNS, AT_WORK, PAUSED, HELD, OFF)
EVERY_CALL = (None, BackgroundCall(running=True), ENDED, BackgroundCall(running=False, error="no room"))


@pytest.mark.parametrize("asked", [1, 90, 900])
def test_whatever_is_seen_of_a_migration_the_machine_ends_up_running_on_one_host_alone(asked: int) -> None:
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
