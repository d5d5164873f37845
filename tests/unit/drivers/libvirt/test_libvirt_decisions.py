"""What is next for a step on libvirt, from what was seen of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from forewarn.control.driver import Running, Unknown
from forewarn.core.basic_types import HostName, OrderId, Work
from forewarn.drivers.libvirt import decisions
from forewarn.drivers.libvirt.decisions import Act, Broken, Finished, Next
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.sights import DomainJob, DomainMark, DomainSight, DomainState, LongCall, Seen

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OPTIONS = LibvirtOptions(
    freeze_for=timedelta(seconds=5),
    shutdown_for=timedelta(seconds=60),
    reboot_for=timedelta(seconds=120),
    migrate_for=timedelta(seconds=600),
)
RUNS, PAUSED, OFF = (
    Seen(state=DomainState.RUNNING, run=7),
    Seen(state=DomainState.PAUSED, run=7),
    Seen(state=DomainState.OFF),
)
HELD = replace(PAUSED, migrating=True)
ENDED = LongCall(running=False)


def mark(work: Work, *, run: int | None = None, boot: str = "", back: str = "", **ago: float) -> DomainMark:
    """Return a mark; times are said as seconds ago."""
    times = {name: NOW - timedelta(seconds=seconds) for name, seconds in ago.items()}
    target = HostName("kvm02") if work in (Work.FREEZE, Work.REDEPLOY) else None
    named = {"order": OrderId("O"), "machine": "m", "attempt": 1, "work": work, "target": target}
    return DomainMark(**{"begun": NOW, **named, "run": run, "boot": boot, "back": back, **times})  # type: ignore[arg-type]


def mine(seen: Seen, of: DomainMark) -> Seen:
    return replace(seen, mark=of)


def decided(
    of: DomainMark, sight: DomainSight, *, moves: bool = False, options: LibvirtOptions = OPTIONS
) -> Next:
    return decisions.next_of(of.work, moves=moves)(of, sight, now=NOW, options=options)


@pytest.mark.parametrize(
    ("seen", "times", "next_"),
    [
        (RUNS, {}, Act.SUSPEND),
        (RUNS, {"asked": 1}, Act.SUSPEND),  # a crash came between the mark and the act
        (PAUSED, {"asked": 1, "away": 1}, Running(NOW + timedelta(seconds=4))),
        (PAUSED, {"asked": 6, "away": 5}, Act.RESUME),
        (PAUSED, {"asked": 6}, Act.RESUME),
        (RUNS, {"asked": 6, "away": 5}, Finished()),
    ],
)
def test_a_freeze_is_suspended_and_resumed_after_a_while(
    seen: Seen, times: dict[str, float], next_: Next
) -> None:
    assert decided(mark(Work.FREEZE, **times), DomainSight(here=seen)) == next_


@pytest.mark.parametrize(
    ("seen", "why"), [(None, "not have it"), (OFF, "it is off"), (PAUSED, "by other hands")]
)
def test_what_does_not_run_is_not_frozen(seen: Seen | None, why: str) -> None:
    answer = decided(mark(Work.FREEZE), DomainSight(here=seen))
    assert isinstance(answer, Broken)
    assert why in answer.why


@pytest.mark.parametrize(
    ("work", "seen", "times", "next_"),
    [
        (Work.EVICT, RUNS, {}, Act.SHUT_DOWN),
        (Work.EVICT, RUNS, {"asked": 59.5}, Running(NOW + timedelta(seconds=0.5))),
        (Work.EVICT, RUNS, {"asked": 10}, Running(NOW + decisions.LOOK_AGAIN)),
        (Work.EVICT, RUNS, {"asked": 60}, Act.POWER_OFF),
        (Work.EVICT, PAUSED, {"asked": 60}, Act.POWER_OFF),
        (Work.EVICT, OFF, {"asked": 5}, Finished()),
        (Work.TERMINATE, RUNS, {}, Act.SHUT_DOWN),
        (Work.TERMINATE, OFF, {"asked": 5}, Finished()),
        (Work.TERMINATE, None, {"asked": 5}, Finished()),
    ],
)
def test_a_guest_is_asked_to_shut_down_and_powered_off_if_it_does_not(
    work: Work, seen: Seen | None, times: dict[str, float], next_: Next
) -> None:
    assert decided(mark(work, **times), DomainSight(here=seen)) == next_


def test_only_with_destroy_a_terminated_domain_is_undefined() -> None:
    destroying = LibvirtOptions(destroy=True)
    assert (
        decided(mark(Work.TERMINATE, asked=5), DomainSight(here=OFF), options=destroying) is Act.UNDEFINE_HERE
    )
    assert decided(mark(Work.EVICT, asked=5), DomainSight(here=OFF), options=destroying) == Finished()


@pytest.mark.parametrize(
    ("boot", "times", "next_"),
    [
        ("", {}, Act.REBOOT),
        ("a", {"asked": 5}, Running(NOW + decisions.LOOK_AGAIN)),  # it has not gone down yet
        ("", {"asked": 5}, Running(NOW + decisions.LOOK_AGAIN)),
        ("b", {"asked": 5}, Finished(since=NOW - timedelta(seconds=5))),
        ("a", {"asked": 120}, Act.RESET),
        ("", {"asked": 130, "forced": 10}, Running(NOW + decisions.LOOK_AGAIN)),
        ("b", {"asked": 130, "forced": 10}, Finished(since=NOW - timedelta(seconds=130))),
    ],
)
def test_another_boot_of_which_the_agent_speaks_is_the_proof(
    boot: str, times: dict[str, float], next_: Next
) -> None:
    of = mark(Work.REBOOT, run=7, boot="a", **times)
    assert decided(of, DomainSight(here=RUNS, boot=boot)) == next_


def test_a_guest_that_does_not_come_up_after_its_reset_has_failed() -> None:
    answer = decided(mark(Work.REBOOT, run=7, boot="a", asked=240, forced=120), DomainSight(here=RUNS))
    assert isinstance(answer, Broken)
    assert "see its console" in answer.why


@pytest.mark.parametrize(
    ("seen", "times", "next_"),
    [
        (RUNS, {}, Act.SHUT_DOWN),
        (RUNS, {"asked": 60}, Act.POWER_OFF),
        (OFF, {"asked": 6}, Act.START_HERE),
        (replace(RUNS, run=8), {"asked": 6}, Finished(since=NOW - timedelta(seconds=6))),
    ],
)
def test_without_an_agent_a_new_run_from_being_off_is_the_proof(
    seen: Seen, times: dict[str, float], next_: Next
) -> None:
    assert decided(mark(Work.REBOOT, run=7, **times), DomainSight(here=seen)) == next_


def test_a_machine_is_never_started_elsewhere_before_its_host_has_forgotten_it() -> None:
    of = mark(Work.REDEPLOY, asked=10)
    there = mine(OFF, of)
    assert decided(of, DomainSight(here=RUNS), moves=True) == Running(NOW + decisions.LOOK_AGAIN)
    assert decided(of, DomainSight(here=OFF), moves=True) is Act.DEFINE_THERE
    assert decided(of, DomainSight(here=OFF, there=there), moves=True) is Act.UNDEFINE_HERE
    assert decided(of, DomainSight(here=None, there=there), moves=True) is Act.START_THERE
    over = Finished(there=True, since=NOW - timedelta(seconds=10))
    assert decided(of, DomainSight(here=None, there=mine(RUNS, of)), moves=True) == over
    assert decided(of, DomainSight(here=OFF, there=mine(RUNS, of)), moves=True) is Act.UNDEFINE_HERE


def test_a_machine_that_has_moved_is_away_until_its_agent_answers_if_it_had_one() -> None:
    of = mark(Work.REDEPLOY, boot="a", asked=10, started=3)
    sight = DomainSight(here=None, there=mine(RUNS, of))
    over = Finished(there=True, since=NOW - timedelta(seconds=10))
    assert decided(of, sight, moves=True) == Running(NOW + decisions.LOOK_AGAIN)
    assert decided(of, replace(sight, boot="b"), moves=True) == over
    silent = replace(of, started=NOW - OPTIONS.reboot_for)
    assert decided(silent, DomainSight(here=None, there=mine(RUNS, silent)), moves=True) == over


def test_one_that_somebody_started_again_on_its_host_is_shut_down_again() -> None:
    of = mark(Work.REDEPLOY, asked=70)
    assert decided(of, DomainSight(here=RUNS, there=mine(OFF, of)), moves=True) is Act.POWER_OFF


@pytest.mark.parametrize(
    ("here", "there", "why"),
    [
        (None, None, "neither host has it"),
        (OFF, OFF, "a domain with its UUID already"),
        (OFF, mine(OFF, replace(mark(Work.REDEPLOY), attempt=2)), "a domain with its UUID already"),
        (RUNS, mine(RUNS, mark(Work.REDEPLOY)), "runs on both hosts"),
    ],
)
def test_a_move_that_makes_no_sense_fails_and_says_why(
    here: Seen | None, there: Seen | None, why: str
) -> None:
    answer = decided(mark(Work.REDEPLOY), DomainSight(here=here, there=there), moves=True)
    assert isinstance(answer, Broken)
    assert why in answer.why


def test_a_machine_that_its_target_does_not_take_runs_again_where_it_was() -> None:
    of = mark(Work.REDEPLOY, asked=10, back="kvm02 does not take it: no space")
    there = mine(OFF, of)
    assert decided(of, DomainSight(here=None, there=there), moves=True) is Act.DEFINE_HERE
    assert decided(of, DomainSight(here=OFF, there=there), moves=True) is Act.UNDEFINE_THERE
    assert decided(of, DomainSight(here=OFF), moves=True) is Act.START_HERE
    why = "kvm02 does not take it: no space; it runs where it was"
    assert decided(of, DomainSight(here=RUNS), moves=True) == Broken(why)


@pytest.mark.parametrize(
    ("sight", "next_"),
    [
        (DomainSight(here=RUNS), Act.MIGRATE),
        (
            DomainSight(here=replace(RUNS, job=DomainJob(progress=0.4)), there=HELD),
            Running(NOW + decisions.LOOK_AGAIN, progress=0.4),
        ),
        (DomainSight(here=RUNS, call=LongCall(running=True)), Running(NOW + decisions.LOOK_AGAIN)),
        (DomainSight(here=None, there=HELD), Running(NOW + decisions.LOOK_AGAIN)),
        (DomainSight(here=None, there=RUNS), Finished(there=True)),
        (DomainSight(here=OFF, there=RUNS), Act.UNDEFINE_HERE),
        (DomainSight(here=HELD, there=RUNS, call=ENDED), Act.UNDEFINE_HERE),
        (DomainSight(here=HELD, there=None, call=ENDED), Act.TAKE_BACK),
        (DomainSight(here=RUNS, call=LongCall(running=False, error="no room")), Broken("no room")),
    ],
)
def test_a_migration_is_seen_from_both_hosts(sight: DomainSight, next_: Next) -> None:
    assert decided(mark(Work.FREEZE, asked=10), sight, moves=True) == next_


def test_what_both_hosts_hold_without_a_migration_is_left_to_libvirt_and_to_people() -> None:
    assert isinstance(
        decided(mark(Work.FREEZE, asked=10), DomainSight(here=RUNS, there=HELD), moves=True), Unknown
    )
    assert isinstance(
        decided(mark(Work.FREEZE, asked=90), DomainSight(here=None, there=HELD), moves=True), Unknown
    )
    assert isinstance(
        decided(mark(Work.FREEZE, asked=9), DomainSight(here=RUNS, there=RUNS), moves=True), Broken
    )


def test_a_migration_that_takes_too_long_is_broken_off_and_not_begun_again() -> None:
    late = mark(Work.FREEZE, asked=600)
    assert (
        decided(late, DomainSight(here=replace(RUNS, job=DomainJob()), there=HELD), moves=True) is Act.ABORT
    )
    for call in (None, LongCall(running=False, error="job canceled by client")):
        answer = decided(late, DomainSight(here=RUNS, call=call), moves=True)
        assert isinstance(answer, Broken)
        assert "not through within 10 m" in answer.why


def test_a_machine_that_was_paused_by_others_is_not_migrated() -> None:
    assert isinstance(decided(mark(Work.FREEZE), DomainSight(here=PAUSED), moves=True), Broken)


def test_a_machine_starts_where_it_is_defined() -> None:
    of = mark(Work.START, begun=60)
    assert decided(of, DomainSight(here=None, there=OFF), moves=True) is Act.START_THERE
    assert decided(of, DomainSight(here=None, there=RUNS), moves=True) == Finished(there=True)
    assert isinstance(decided(of, DomainSight(here=None, there=None), moves=True), Broken)
    assert isinstance(decided(of, DomainSight(here=None, there=PAUSED), moves=True), Broken)


def test_a_machine_that_its_host_is_just_starting_is_waited_for() -> None:
    assert isinstance(
        decided(mark(Work.START, begun=59), DomainSight(here=None, there=PAUSED), moves=True), Running
    )


def test_a_machine_of_a_lost_host_is_defined_and_started_elsewhere_unless_that_still_runs_it() -> None:
    of = mark(Work.RECOVER)
    assert decided(of, DomainSight(here=None), moves=True) is Act.DEFINE_THERE
    assert decided(of, DomainSight(here=None, there=OFF), moves=True) is Act.START_THERE
    answer = decided(of, DomainSight(here=RUNS), moves=True)
    assert isinstance(answer, Broken)
    assert "fence it" in answer.why


def test_a_recovered_machine_is_undefined_where_it_was_before_it_is_started() -> None:
    recover = mark(Work.RECOVER)
    assert decided(recover, DomainSight(here=OFF, there=None), moves=True) is Act.DEFINE_THERE
    assert decided(recover, DomainSight(here=OFF, there=OFF), moves=True) is Act.UNDEFINE_HERE
    assert decided(recover, DomainSight(here=None, there=OFF), moves=True) is Act.START_THERE
    assert decided(recover, DomainSight(here=OFF, there=RUNS), moves=True) == Finished(there=True)


def test_a_migration_that_was_not_heard_of_any_more_is_begun_again() -> None:
    of = mark(Work.FREEZE, asked=20)
    assert decided(of, DomainSight(here=RUNS, call=ENDED), moves=True) == Act.MIGRATE


AT_WORK = replace(RUNS, job=DomainJob())
EVERY_STATE = (None, RUNS, AT_WORK, PAUSED, HELD, OFF)
EVERY_CALL = (None, LongCall(running=True), ENDED, LongCall(running=False, error="no room"))


@pytest.mark.parametrize("asked", [1, 90, 900])
def test_whatever_is_seen_of_a_migration_the_machine_ends_up_running_on_one_host_alone(asked: int) -> None:
    of = mark(Work.FREEZE, asked=asked)
    for here, there, call in product(EVERY_STATE, EVERY_STATE, EVERY_CALL):
        following = decided(of, DomainSight(here=here, there=there, call=call), moves=True)
        runs_there = there is not None and there.state is DomainState.RUNNING
        holds_there = there is not None and there.active
        at_work = here is AT_WORK or (call is not None and call.running)
        may = {
            Finished(there=True): here is None and runs_there,
            Act.UNDEFINE_HERE: here in (PAUSED, HELD, OFF) and runs_there,
            Act.MIGRATE: here is RUNS and not holds_there,
            Act.TAKE_BACK: here is HELD and not holds_there,
            Act.ABORT: here is AT_WORK,
        }
        if isinstance(following, Act | Finished):
            assert may[following], (following, here, there, call)
            assert following is Act.ABORT or not at_work, (following, here, there, call)
