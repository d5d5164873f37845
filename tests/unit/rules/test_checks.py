"""Each check finds a change that breaks its rule, and the page of rules names existing checks."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import time, timedelta

import pytest

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    EventStatus,
    EventType,
    GroupName,
    HostName,
    HostState,
    Kind,
    MachineId,
    MachineName,
    MachineState,
    OrderId,
    StepState,
    Work,
)
from forewarn.core.model.clock_slew import Slew
from forewarn.core.model.event import Event, Resource
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import Step
from forewarn.core.model.project import Calendar, Window
from forewarn.core.model.record import PromiseCounts, Record
from forewarn.core.model.slice import Slice
from forewarn.core.policy import Policy
from tests import ROOT
from tests.rules import Change, misplaced, overdue, unexplained, violations
from tests.rules.timing import promises_are_counted
from tests.rules.violations import RULES
from tests.unit.slices import HOUR, MINUTE, SECOND, Fleet, machine

WEB = GroupName("web")
NIGHT = Calendar(windows=(Window(days=frozenset(range(7)), start=time(22), length=timedelta(hours=2)),))


def fleet() -> Fleet:
    """Announce maintenance of host-1 to web, with machines of two update domains, and to db."""
    made = Fleet(machine("web-0"), machine("web-1"), machine("web-2", "host-2", domain=1), machine("db-0"))
    made.maintain()
    return made


def change(before: Slice, after: Slice, made: Fleet) -> Change:
    records = [record for record in made.records if record.number > before.number]
    return Change(before=before, after=after, records=records, now=made.now, policy=made.policy)


def broken(before: Slice, after: Slice, made: Fleet) -> set[str]:
    return {each.partition(":")[0] for each in violations(change(before, after, made))}


def of_web(part: Slice) -> Event:
    return next(event for event in part.events.values() if event.group == WEB)


def with_event(part: Slice, **more: object) -> Slice:
    event = of_web(part)
    return replace(part, events={**part.events, event.id: replace(event, **more)})  # type: ignore[arg-type]


def test_changes_by_core_break_no_rule() -> None:
    made = fleet()
    before = made.draft.base
    for span in (15 * MINUTE, 2 * MINUTE):
        after = made.saved()
        assert violations(change(before, after, made)) == []
        made.pass_(span)
        before = after
        for order in list(made.draft.orders):
            made.finish(order)


def test_counts_of_promises_that_differ_from_the_history_are_found() -> None:
    made = fleet()
    before = made.saved()
    made.pass_(15 * MINUTE)
    started = made.saved()
    nothing = replace(change(before, started, made), counted=PromiseCounts())
    assert violations(nothing) == []
    assert len(violations(replace(nothing, counted=PromiseCounts(kept=1)))) == 1
    made.turn(2 * MINUTE)
    for order in list(made.draft.orders):
        made.finish(order)
    same = replace(change(started, made.saved(), made), counted=PromiseCounts(never=3))
    assert violations(same) == []
    wrong = ({}, {"never": 2}, {"never": 3, "kept": 1}, {"kept": 3}, {"never": 3, "broken": 1})
    for counts in wrong:
        found = violations(replace(same, counted=PromiseCounts(**counts)))
        assert {each.partition(":")[0] for each in found} == {"promises_are_counted"}


def test_an_event_that_starts_and_ends_in_one_change_may_be_judged() -> None:
    made = fleet()
    before = made.saved()
    started = replace(before, events={})
    ends = [Kind.EVENT_STARTED, Kind.EVENT_FINISHED]
    records = [
        Record(number=100, at=made.now, kind=kind, event=id_, reason="so")
        for id_ in before.events
        for kind in ends
    ]
    at_once = replace(change(before, started, made), records=records, now=made.now + 15 * MINUTE)
    for kept, wrong in ((0, False), (3, False), (4, True)):
        found = list(promises_are_counted(replace(at_once, counted=PromiseCounts(kept=kept))))
        assert bool(found) is wrong


@pytest.mark.parametrize(
    ("tamper", "rule"),
    [
        (lambda part: with_event(part, status=EventStatus.STARTED), "notice_is_kept"),
        (lambda part: with_event(part, status=EventStatus.STARTED), "stages_start_completely"),
        (
            lambda part: with_event(part, not_before=of_web(part).not_before - SECOND),
            "events_only_move_forward",
        ),
        (lambda part: replace(part, events={}), "departures_have_a_record"),
        (lambda part: with_event(part, resources=of_web(part).resources[:1]), "departures_have_a_record"),
        (lambda part: with_event(part, resources=()), "resources_are_of_one_group_and_domain"),
        (
            lambda part: with_event(
                part, resources=(Resource(machine=MachineId("web-2"), name=MachineName("web-2")),)
            ),
            "resources_are_of_one_group_and_domain",
        ),
        (
            lambda part: with_event(part, not_before=of_web(part).not_before + SECOND),
            "incarnations_count_changes",
        ),
    ],
)
def test_a_change_that_breaks_a_rule_is_found(tamper: Callable[[Slice], Slice], rule: str) -> None:
    made = fleet()
    saved = made.saved()
    assert rule in broken(saved, tamper(saved), made)


def test_a_short_notice_and_a_late_start_are_found() -> None:
    """Rules 1 and 11."""
    made = fleet()
    before, after = made.draft.base, made.saved()
    short = with_event(after, not_before=made.now + MINUTE)
    assert "notice_is_kept" in broken(before, short, made)
    made.turn(HOUR)
    started = replace(
        after, events={id_: replace(each, status=EventStatus.STARTED) for id_, each in after.events.items()}
    )
    assert "notice_is_kept" in broken(after, started, made)


def test_a_status_that_goes_back_is_found() -> None:
    """Rule 2."""
    made = fleet()
    saved = made.saved()
    assert "events_only_move_forward" in broken(with_event(saved, status=EventStatus.STARTED), saved, made)


def test_an_event_armed_with_another_update_domain_is_found() -> None:
    """Rule 4."""
    made = fleet()
    before = made.saved()
    other = replace(of_web(before), id="X", number=99, update_domain=1, resources=())  # type: ignore[arg-type]
    after = replace(before, events={**before.events, other.id: other})
    assert "update_domains_are_not_armed_together" in broken(before, after, made)


def test_a_machine_with_two_steps_running_is_found() -> None:
    """Rule 5."""
    made = fleet()
    saved = made.saved()
    (order,) = saved.orders.values()
    busy = replace(
        order.stages[0], steps=tuple(replace(each, state=StepState.RUNNING) for each in order.steps)
    )
    twice = {id_: replace(order, id=id_, stages=(busy,)) for id_ in (order.id, "X")}
    after = replace(saved, orders=twice)  # type: ignore[arg-type]
    assert "machines_have_one_step_at_a_time" in broken(saved, after, made)


def test_a_finished_step_that_changes_is_found() -> None:
    """Rule 8."""
    made = fleet()
    made.pass_(15 * MINUTE)
    (order,) = made.draft.orders.values()
    made.finish(order.id)
    done = made.saved()
    (order,) = done.orders.values()
    again = replace(order.stages[0], steps=(replace(order.steps[0], attempt=2), *order.steps[1:]))
    after = replace(done, orders={order.id: replace(order, stages=(again,))})
    assert "finished_steps_stay_finished" in broken(done, after, made)


def test_an_attempt_that_begins_twice_is_found() -> None:
    """Rule 8."""
    made = fleet()
    (order,) = made.draft.orders.values()
    made.pass_(15 * MINUTE)
    running = made.saved()
    made.turn(MINUTE)
    assert broken(running, made.saved(), made) == set()
    again = replace(running.orders[order.id].steps[0], begun_at=made.now)
    assert "attempts_are_begun_once" in broken(running, _with_step(running, order.id, again), made)
    ended = replace(again, state=StepState.FAILED)
    before = _with_step(running, order.id, ended)
    assert "attempts_are_begun_once" in broken(before, _with_step(running, order.id, again), made)
    later = _with_step(running, order.id, replace(again, attempt=2))
    assert "attempts_are_begun_once" not in broken(before, later, made)


def _with_step(fleet: Slice, order: OrderId, step: Step) -> Slice:
    """Return the fleet with another first step of an order."""
    mine = fleet.orders[order]
    stage = replace(mine.stages[0], steps=(step, *mine.stages[0].steps[1:]))
    return replace(fleet, orders={**fleet.orders, order: replace(mine, stages=(stage, *mine.stages[1:]))})


def test_an_announced_step_that_begins_without_an_event_is_found() -> None:
    """Rule 12."""
    made = fleet()
    before = made.saved()
    heard = {(event.order, named.machine) for event in before.events.values() for named in event.resources}
    made.pass_(15 * MINUTE)
    after = made.saved()
    fair = replace(change(before, after, made), announced=heard)
    assert violations(fair) == []
    found = violations(replace(fair, after=replace(after, events={})))
    assert any(each.startswith("announced_work_needs_a_started_event") for each in found)


def test_a_start_outside_a_window_and_an_event_over_budget_are_found() -> None:
    made = fleet()
    before = made.draft.base
    made.pass_(15 * MINUTE)
    after = made.saved()
    bound = {DEFAULT_PROJECT: replace(after.projects[DEFAULT_PROJECT], calendar=NIGHT)}
    outside = replace(after, projects=bound)
    assert "windows_are_respected" in broken(before, outside, made)
    at_night = Slew(at=made.now, system=made.now.replace(hour=22) - timedelta(days=1))
    assert "windows_are_respected" not in broken(before, replace(outside, slew=at_night), made)
    needs = replace(after.groups[WEB], policy=GroupPolicy(budget=2))
    assert "budgets_are_respected" in broken(
        before, replace(after, groups={**after.groups, WEB: needs}), made
    )


def test_machines_in_impossible_places_are_found() -> None:
    saved = fleet().saved()
    assert misplaced(saved) == []
    web = saved.machines[MachineId("web-0")]
    homeless = {**saved.machines, web.id: replace(web, host=None)}
    assert misplaced(replace(saved, machines=homeless)) == ["web-0 is running on no host"]
    stopped = {**saved.machines, web.id: replace(web, host=None, state=MachineState.STOPPED)}
    assert misplaced(replace(saved, machines=stopped)) == []
    failed = {
        **saved.hosts,
        HostName("host-2"): replace(saved.hosts[HostName("host-2")], state=HostState.FAILED),
    }
    assert misplaced(replace(saved, hosts=failed)) == ["web-2 is running on host-2, which failed"]
    gone = {id_: each for id_, each in saved.machines.items() if each.name != "db-0"}
    (lost,) = misplaced(replace(saved, machines=gone))
    assert lost.endswith("names db-0, which left the fleet")


def test_overdue_events_and_orders_without_a_reason_are_found() -> None:
    """Rules 10 and 11, after a tick."""
    made = fleet()
    saved = made.saved()
    late = made.now + 45 * MINUTE
    assert overdue(saved, now=late - SECOND, policy=made.policy) == []
    assert len(overdue(saved, now=late, policy=made.policy)) == 2
    assert unexplained(saved) == []
    (order,) = saved.orders.values()
    assert len(unexplained(replace(saved, orders={order.id: replace(order, waiting=())}))) == 1


def test_an_event_that_leaves_with_a_record_is_accepted() -> None:
    made = fleet()
    saved = made.saved()
    made.pass_(15 * MINUTE)
    for order in list(made.draft.orders):
        made.finish(order)
    made.pass_(90 * SECOND)
    assert made.history(Kind.EVENT_FINISHED) == ["done"] * 2
    assert "departures_have_a_record" not in broken(saved, made.saved(), made)


def test_the_page_of_rules_names_existing_checks() -> None:
    page = (ROOT / "docs/explanation/rules.md").read_text()
    known = {check.__name__ for check in (*RULES, misplaced, overdue, unexplained)}
    assert re.findall(r"^## Rule (\d+):", page, re.MULTILINE) == [f"{number}" for number in range(1, 14)]
    for row in page.partition("| rule | code |")[2].splitlines()[2:]:
        _, _, kept, checked, tested, _ = row.split("|")
        for name in re.findall(r"`((?:core|control|guest|server)/[\w/.]*)`", kept):
            assert (ROOT / "src/forewarn" / name).exists(), name
        assert set(re.findall(r"`(\w+)`", checked)) <= known
        folder = ""
        for named, name in re.findall(r"(tests/[\w/]+/)?(test_\w+\.py)", tested):
            folder = named or folder
            assert (ROOT / folder / name).exists(), name


def unarmed_week() -> Fleet:
    """Announce two degraded hosts with different update domains, a week ahead."""
    made = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1), hosts=["host-9"])
    made.maintain("host-1", Action.DEGRADE)
    made.maintain("host-2", Action.DEGRADE)
    return made


def test_two_update_domains_that_are_armed_in_one_transaction_are_found() -> None:
    """Rule 4."""
    made = unarmed_week()
    made.turn(timedelta(days=7) - 10 * MINUTE)
    before = made.draft.base
    armed = {id_: replace(event, armed_at=made.now) for id_, event in before.events.items()}
    found = broken(before, replace(before, events=armed), made)
    assert found == {"update_domains_are_not_armed_together"}


def test_an_event_that_is_armed_too_early_or_again_or_starts_unarmed_is_found() -> None:
    """Rule 4."""
    made = unarmed_week()
    before = made.saved()
    early = with_event(before, armed_at=made.now)
    assert broken(before, early, made) == {"events_are_armed_in_time"}
    assert broken(early, with_event(before, armed_at=made.now + SECOND), made) == {"events_are_armed_in_time"}
    started = with_event(before, status=EventStatus.STARTED)
    assert "events_are_armed_in_time" in broken(before, started, made)


def test_an_event_that_is_armed_without_the_others_of_its_stage_is_found() -> None:
    """Rule 4."""
    made = Fleet(machine("web-0"), machine("db-0"), hosts=["host-9"])
    made.maintain(action=Action.DEGRADE)
    made.approve(of_web(made.saved()))
    before, after = made.draft.base, made.saved()
    assert broken(before, after, made) == set()
    (db,) = (event for event in after.events.values() if event.group != WEB)
    alone = replace(after, events={**after.events, db.id: replace(db, armed_at=None)})
    assert broken(before, alone, made) == {"stages_are_armed_completely"}


def test_a_not_before_that_moves_without_a_record_is_found() -> None:
    """Rule 4."""
    made = unarmed_week()
    before = made.saved()
    moved = with_event(before, not_before=of_web(before).not_before + MINUTE)
    assert "moved_times_have_a_record" in broken(before, moved, made)


def test_postponing_and_arming_in_turn_breaks_no_rule() -> None:
    made = unarmed_week()
    before = made.saved()
    made.pass_(timedelta(days=7) - 10 * MINUTE)
    after = made.saved()
    assert [event.armed for event in after.events.values()] == [True, False]
    assert broken(before, after, made) == set()


def test_an_event_that_is_not_armed_in_time_is_overdue() -> None:
    made = unarmed_week()
    saved = made.saved()
    last = of_web(saved).not_before - 10 * MINUTE
    assert overdue(saved, now=last - SECOND, policy=made.policy) == []
    assert len(overdue(saved, now=last, policy=made.policy)) == 2


def test_freezes_beyond_the_limit_of_a_group_are_found() -> None:
    """Rule 4."""
    machines = (machine(f"web-{n}", f"host-{n + 1}", domain=n) for n in range(3))
    made = Fleet(*machines, policies={"web": GroupPolicy(freezes_at_once=2)})
    for host in ("host-1", "host-2"):
        made.maintain(host, work=Work.FREEZE)
    before = made.draft.base
    within = made.saved()
    assert broken(before, within, made) == set()
    fewer = replace(within.groups[WEB], policy=GroupPolicy(freezes_at_once=1))
    assert broken(before, replace(within, groups={WEB: fewer}), made) == {
        "update_domains_are_not_armed_together"
    }
    assert broken(before, with_event(within, type=EventType.REBOOT), made) == {
        "update_domains_are_not_armed_together"
    }


def test_a_gang_is_armed_together() -> None:
    made = Fleet(machine("web-0"), machine("web-1", domain=1), policies={"web": GroupPolicy(gang=True)})
    before = made.draft.base
    made.maintain()
    assert broken(before, made.saved(), made) == set()


def test_a_stage_with_more_freezes_than_the_limit_is_found() -> None:
    """Rule 4."""
    policy = GroupPolicy(freezes_at_once=2)
    made = Fleet(machine("web-0"), machine("web-1", domain=1), policies={"web": policy})
    before = made.draft.base
    made.maintain(work=Work.FREEZE)
    after = made.saved()
    assert broken(before, after, made) == set()
    fewer = replace(after.groups[WEB], policy=GroupPolicy())
    assert "stages_have_one_domain_of_a_group" in broken(before, replace(after, groups={WEB: fewer}), made)


def test_short_notice_is_accepted_only_for_groups_that_never_polled() -> None:
    """Rule 1."""
    made = Fleet(machine("web-0"), policy=Policy(unheard_notice=MINUTE), silent=["web"])
    before = made.draft.base
    made.maintain()
    after = made.saved()
    assert broken(before, after, made) == set()
    heard = replace(before, groups={WEB: replace(before.groups[WEB], heard=True)})
    assert broken(heard, after, made) == {"notice_is_kept"}
