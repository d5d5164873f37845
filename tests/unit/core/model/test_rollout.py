"""The planner of rollouts, over fleets from tests and Hypothesis."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    GroupName,
    HostName,
    HostState,
    MachineId,
    MachineName,
    OrderId,
    ProjectName,
    RolloutAction,
    Work,
)
from forewarn.core.errors import Invalid
from forewarn.core.model.constraints import ArmedDomain, Budget, Hold
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.host import Host
from forewarn.core.model.project import Calendar, Project, Window
from forewarn.core.model.rollout import Rollout, Wave, WaveState
from forewarn.core.model.slice import HostSurvey
from forewarn.core.policy import Policy
from forewarn.core.redaction import unmarked
from forewarn.core.rollouts import planning
from forewarn.core.rollouts.candidates import Candidates
from forewarn.core.rollouts.forecast import forecast, on_one_host, with_first_wave_begun
from tests.unit.slices import Fleet, machine

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
WEB, DB = GroupName("web"), GroupName("db")

ONE = ArmedDomain(events=1)


def host(number: int) -> HostName:
    return HostName(f"host-{number}")


def carries(**groups: Mapping[int, int]) -> Footprint:
    return Footprint(
        counts={GroupName(name): counts for name, counts in groups.items()},
        projects=frozenset({ProjectName("default")}),
    )


def survey(*footprints: Footprint, **more: object) -> HostSurvey:
    """Make hosts `host-1` to `host-N` that carry these machines."""
    names = [host(number) for number in range(1, len(footprints) + 1)]
    return HostSurvey(
        hosts={name: Host(name=name) for name in names},
        footprints=dict(zip(names, footprints, strict=True)),
        **more,  # type: ignore[arg-type]
    )


def over(ground: HostSurvey, *, at_once: int = 10, gap: timedelta = timedelta()) -> Rollout:
    wanted = Rollout(
        id="R",
        number=1,
        work=Work.FREEZE,
        hosts=tuple(ground.hosts),
        hosts_at_once=at_once,
        gap=gap,
        by="test",
        created_at=NOW,
    )
    return planning.replan(wanted, ground)


def next_wave(
    plan: Rollout, ground: HostSurvey, *, now: datetime = NOW
) -> tuple[Rollout, tuple[HostName, ...]]:
    return planning.next_wave(plan, ground, now=now, policy=Policy())


def hosts_of(plan: Rollout) -> list[list[str]]:
    return [list(wave.hosts) for wave in plan.waves]


def said(plan: Rollout) -> list[str]:
    return [f"{wait.what}: {wait.reason}" for wait in plan.waiting]


# Waves


def test_two_update_domains_of_a_group_are_never_in_one_wave() -> None:
    ground = survey(carries(web={0: 1}), carries(web={1: 1}), carries(web={0: 2}), carries(db={1: 1}))
    assert hosts_of(over(ground)) == [["host-1", "host-3", "host-4"], ["host-2"]]


def test_a_host_with_two_domains_of_a_group_shares_its_wave_with_no_other_of_that_group() -> None:
    ground = survey(carries(web={0: 1, 1: 1}), carries(web={0: 1}), carries(db={0: 1}))
    assert hosts_of(over(ground)) == [["host-1", "host-3"], ["host-2"]]


def test_a_wave_has_at_most_hosts_at_once_hosts() -> None:
    ground = survey(*(carries(web={0: 1}) for _ in range(5)))
    assert hosts_of(over(ground, at_once=2)) == [["host-1", "host-2"], ["host-3", "host-4"], ["host-5"]]


def test_a_wave_respects_the_budget_of_a_group() -> None:
    budgets = {DB: Budget(needs=2, members=4)}
    ground = survey(*(carries(db={0: 1}) for _ in range(4)), budgets=budgets)
    assert hosts_of(over(ground)) == [["host-1", "host-2"], ["host-3", "host-4"]]


def test_waves_are_planned_again_only_if_the_plan_is_no_longer_valid() -> None:
    before = survey(carries(web={0: 1}), carries(web={0: 1}))
    plan = over(before)
    assert planning.replan(plan, before) is plan
    after = survey(carries(web={0: 1}), carries(web={1: 1}))
    assert hosts_of(planning.replan(plan, after)) == [["host-1"], ["host-2"]]


def test_a_budget_that_no_wave_can_meet_is_refused() -> None:
    ground = survey(carries(db={0: 2}), budgets={DB: Budget(needs=2, members=3)})
    with pytest.raises(Invalid, match="db: needs 2 healthy of 3, but host-1 carries 2"):
        Candidates(over(ground), ground, Policy()).check(now=NOW)


def test_a_plan_accepts_hosts_that_are_blocked_temporarily() -> None:
    budgets = {DB: Budget(needs=2, members=3, down={MachineId("2"): MachineName("db-2")})}
    ground = survey(carries(db={0: 1}), carries(web={1: 1}), budgets=budgets, armed={WEB: {0: ONE}})
    candidates = Candidates(over(ground), ground, Policy())
    candidates.check(now=NOW)
    assert all(candidates.why_not(name, now=NOW) for name in ground.hosts)


# Dead ends


def crowded(*footprints: Footprint) -> HostSurvey:
    return survey(*footprints, budgets={DB: Budget(needs=2, members=3)})


def test_a_rollout_is_stuck_when_each_of_its_hosts_needs_a_person() -> None:
    def why_stuck(ground: HostSurvey) -> str:
        return planning.why_stuck(over(ground), ground, now=NOW, policy=Policy())

    stuck = why_stuck(crowded(carries(db={0: 2}), carries(db={1: 2})))
    assert stuck.startswith("db: needs 2 healthy of 3, but host-1 carries 2 of one update domain: ")
    assert why_stuck(crowded(carries(db={0: 2}), carries(db={1: 1}))) == ""
    assert why_stuck(crowded()) == ""


def test_a_rollout_is_stuck_if_its_plan_would_be_refused() -> None:
    def impossible(ground: HostSurvey, **more: object) -> str:
        plan = replace(over(ground), **more)  # type: ignore[arg-type]
        return planning.why_impossible(plan, ground, now=NOW, policy=Policy())

    assert impossible(survey(carries(web={0: 1}))) == ""
    assert impossible(crowded(carries(db={0: 2}))).startswith("db: needs 2 healthy of 3")
    # Work under way may unblock others.
    under_way = Wave(hosts=(host(1),), orders=(OrderId("O"),), state=WaveState.STARTED)
    assert impossible(crowded(carries(web={0: 1}), carries(db={0: 2})), waves=(under_way,)) == ""


def test_a_rollout_is_stuck_if_no_window_is_long_enough_for_a_host() -> None:
    short = Calendar(windows=(Window(days=frozenset({0}), start=time(22), length=timedelta(minutes=1)),))
    project = Project(name=DEFAULT_PROJECT, calendar=short)
    ground = survey(carries(web={0: 1}), projects={DEFAULT_PROJECT: project})
    why = planning.why_impossible(over(ground), ground, now=NOW, policy=Policy())
    assert unmarked(why).startswith("host-1: project default has no window with room for 5 m of work")


# Choosing hosts


def test_a_blocked_host_is_skipped_with_its_reason() -> None:
    ground = survey(carries(web={1: 1}), carries(db={0: 1}), armed={WEB: {0: ONE}})
    plan, chosen = next_wave(over(ground), ground)
    assert chosen == (host(2),)
    assert hosts_of(plan) == [["host-2"], ["host-1"]]
    assert said(plan) == ["web: update domain 1 waits for domain 0"]


def test_a_group_with_a_machine_down_blocks_its_hosts() -> None:
    budgets = {DB: Budget(needs=2, members=3, down={MachineId("2"): MachineName("db-2")})}
    ground = survey(carries(db={0: 1}), budgets=budgets)
    plan, chosen = next_wave(over(ground), ground)
    assert (chosen, plan.blocked) == ((), True)
    assert said(plan) == ["db: needs 2 healthy, db-2 is down"]


def test_holds_and_failed_hosts_are_reasons_to_wait() -> None:
    hold = Hold(id="H", reason="audit", by="ops", at=NOW, host=host(1))
    ground = survey(carries(web={0: 1}), carries(web={0: 1}), holds=(hold,))
    failed = {**ground.hosts, host(2): Host(name=host(2), state=HostState.FAILED)}
    plan, chosen = next_wave(over(ground), replace(ground, hosts=failed))
    assert chosen == ()
    assert said(plan) == ["host host-1: held by ops: audit", "host-2: is failed: restore it first"]


def test_a_host_with_an_order_of_its_own_waits_for_it() -> None:
    ground = survey(carries(web={0: 1}), carries(web={0: 1}))
    other = Fleet(machine("db-0")).maintain()
    plan, chosen = next_wave(over(ground), replace(ground, orders={host(1): other}))
    assert chosen == (host(2),)
    assert said(plan) == [f"host-1: has order {other.id} (maintenance), which is announced"]


def test_a_rollout_without_remaining_hosts_waits_for_nothing() -> None:
    plan, chosen = next_wave(replace(over(survey(carries())), blocked=True), survey())
    assert (plan.hosts, plan.blocked, chosen) == ((), False, ())


def test_the_next_wave_waits_for_the_update_domains_of_the_current_one() -> None:
    ground = survey(carries(web={0: 1}, db={0: 1}), carries(web={1: 1}), carries(web={2: 1}))
    plan = planning.begin(over(ground), {host(1): OrderId("O")}, ground, now=NOW)
    assert plan.waves[0] == Wave(
        hosts=(host(1),), state=WaveState.ANNOUNCED, orders=(OrderId("O"),), announced_at=NOW
    )
    assert said(plan) == ["web: update domain 1 waits for domain 0"]


def half_placed(ground: HostSurvey) -> Rollout:
    """Return a rollout whose first wave has an order for its first host only."""
    return planning.begin(over(ground), {host(1): OrderId("O-1")}, ground, now=NOW)


def test_the_orders_of_a_wave_are_placed_in_batches() -> None:
    ground = survey(carries(), carries(), carries())
    plan = half_placed(ground)
    assert (plan.coming, plan.left) == ((host(2), host(3)), ())
    plan = planning.add_orders(plan, [host(2)], {host(2): OrderId("O-2")}, now=NOW)
    assert (plan.waves[0].orders, plan.coming) == (("O-1", "O-2"), (host(3),))


def test_a_host_whose_order_was_refused_is_planned_again() -> None:
    plan = half_placed(survey(carries(), carries(), carries()))
    plan = planning.add_orders(plan, [host(2), host(3)], {host(3): OrderId("O-3")}, now=NOW)
    assert [(wave.hosts, wave.orders) for wave in plan.waves] == [
        ((host(1), host(3)), ("O-1", "O-3")),
        ((host(2),), ()),
    ]
    assert (plan.coming, plan.left) == ((), (host(2),))


def opened(ground: HostSurvey) -> Rollout:
    """Return a rollout whose first wave has begun and has no order yet."""
    return with_first_wave_begun(over(ground), ground, now=NOW, policy=Policy())


def test_the_first_wave_of_a_large_rollout_begins_without_orders() -> None:
    plan = opened(survey(carries(web={0: 1}), carries(web={1: 1})))
    first, second = plan.waves
    assert (first.state, first.orders, plan.coming) == (WaveState.ANNOUNCED, (), (host(1),))
    assert first.ends_about is not None
    assert (second.hosts, second.state) == ((host(2),), WaveState.PLANNED)


def test_a_large_rollout_without_an_announceable_host_waits_with_reasons() -> None:
    ground, hold = survey(carries()), Hold(id="H", reason="audit", by="ops", at=NOW, host=host(1))
    plan = opened(replace(ground, holds=(hold,)))
    assert (plan.begun, plan.blocked, plan.left) == ((), True, (host(1),))
    assert plan.waiting


def test_a_wave_is_announced_with_its_first_order() -> None:
    plan = opened(survey(carries()))
    later = NOW + timedelta(minutes=1)
    plan = planning.add_orders(plan, [host(1)], {host(1): OrderId("O-1")}, now=later)
    assert plan.waves[0].announced_at == later


def test_a_wave_without_any_order_is_dropped() -> None:
    plan = planning.add_orders(opened(survey(carries())), [host(1)], {}, now=NOW)
    assert (plan.begun, plan.coming, plan.left) == ((), (), (host(1),))
    assert [wave.hosts for wave in plan.planned] == [(host(1),)]


def test_failed_and_removed_hosts_get_no_order() -> None:
    ground = survey(carries(), carries(), carries(), carries())
    failed = Host(name=host(2), state=HostState.FAILED)
    now = replace(ground, hosts={host(2): failed, host(4): ground.hosts[host(4)]})
    plan = half_placed(ground)
    assert planning.still_announceable(plan, plan.coming, now, now=NOW, policy=Policy()) == (host(4),)


def test_the_last_wave_blocks_no_other() -> None:
    ground = survey(carries(web={0: 1}))
    plan = planning.begin(over(ground), {host(1): OrderId("O")}, ground, now=NOW)
    assert (plan.begun, plan.waiting) == (plan.waves, ())


def test_a_removed_host_leaves_the_rollout() -> None:
    ground = survey(carries(web={0: 1}), carries(web={0: 1}))
    remaining = replace(ground, hosts={host(2): Host(name=host(2))})
    plan, chosen = next_wave(over(ground), remaining)
    assert (plan.hosts, chosen) == ((host(2),), (host(2),))


def test_later_waves_name_the_wave_that_they_wait_for() -> None:
    ground = survey(carries(web={0: 1}), carries(web={1: 1}), carries(web={2: 1}))
    reasons = planning.reasons(over(ground), now=NOW)
    assert [(each.what, each.reason) for each in reasons] == [
        ("host-2", "wave 2 waits for wave 1"),
        ("host-3", "wave 3 waits for wave 2"),
    ]


def test_the_gap_lasts_from_the_end_of_the_last_wave() -> None:
    done = Wave(hosts=(host(1),), state=WaveState.DONE, orders=(), ended_at=NOW)
    plan = replace(
        over(survey(carries(), carries()), gap=timedelta(hours=1)), waves=(done, Wave(hosts=(host(2),)))
    )
    assert not planning.is_ready(plan, now=NOW + timedelta(minutes=59))
    assert planning.with_due_time(plan, {}, now=NOW, policy=Policy()).due_at == NOW + timedelta(hours=1)
    assert planning.is_ready(plan, now=NOW + timedelta(hours=1))


# Forecasts


def test_the_forecast_adds_up_notice_work_and_gaps() -> None:
    ground = survey(
        carries(web={0: 1, 1: 1}), carries(web={2: 1}), notices={WEB: timedelta(minutes=30)}, sizes={WEB: 3}
    )
    _, (first, second) = forecast(over(ground, gap=timedelta(minutes=10)), ground, now=NOW, policy=Policy())
    assert first.start_at == NOW + timedelta(minutes=30)
    assert first.end_at == NOW + 2 * timedelta(minutes=35)
    assert second.announce_at == first.end_at + timedelta(minutes=10)


def test_a_host_with_all_domains_at_once_has_at_most_one_stage() -> None:
    ground = survey(carries(web={0: 1, 1: 2}), carries())
    assert [ground.footprint(name).stages for name in ground.hosts] == [2, 0]
    at_once = ground.all_domains_at_once()
    assert [at_once.footprint(name).stages for name in at_once.hosts] == [1, 0]
    assert at_once.footprint(host(1)).together(WEB) == 3


def test_a_plan_warns_of_groups_with_every_member_on_one_host() -> None:
    ground = survey(carries(web={0: 1, 1: 1}), carries(db={0: 1}), sizes={WEB: 2, DB: 2})
    assert on_one_host(ground) == ["group web: all 2 members are on host-1"]


# Properties

counts = st.dictionaries(st.integers(0, 3), st.integers(1, 3), min_size=1, max_size=2)
footprints = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), counts, max_size=4)


@st.composite
def grounds(draw: st.DrawFn) -> HostSurvey:
    ground = survey(*(carries(**each) for each in draw(st.lists(footprints, max_size=12))))
    members: dict[GroupName, int] = {}
    for footprint in ground.footprints.values():
        for name, domains in footprint.counts.items():
            members[name] = members.get(name, 0) + sum(domains.values())
    budgets = {}
    for name, size in members.items():
        needs, down = draw(st.integers(0, size)), draw(st.integers(0, 2))
        if needs:
            names = [f"{name}-{place}" for place in range(min(down, size))]
            machines = {MachineId(each): MachineName(each) for each in names}
            budgets[name] = Budget(needs=needs, members=size, down=machines)
    groups = st.sampled_from(list(members) or [WEB])
    armed = draw(st.dictionaries(groups, st.dictionaries(st.integers(0, 3), st.just(ONE))))
    return replace(ground, budgets=budgets, armed=armed)


def check_domains(hosts: tuple[HostName, ...], ground: HostSurvey) -> None:
    seen: dict[GroupName, tuple[HostName, frozenset[int]]] = {}
    for name in hosts:
        for group, domains in ground.footprints[name].counts.items():
            if group in seen:
                assert (seen[group][1], len(domains)) == (frozenset(domains), 1), (name, seen[group])
            seen[group] = (name, frozenset(domains))


def disturbed(hosts: tuple[HostName, ...], ground: HostSurvey) -> dict[GroupName, int]:
    found: dict[GroupName, int] = {}
    for name in hosts:
        for group, domains in ground.footprints[name].counts.items():
            found[group] = found.get(group, 0) + max(domains.values())
    return found


@given(grounds(), st.integers(1, 5))
def test_every_plan_has_each_host_once_and_no_two_domains_of_a_group_in_a_wave(
    ground: HostSurvey, at_once: int
) -> None:
    plan = over(ground, at_once=at_once)
    assert sorted(name for wave in plan.waves for name in wave.hosts) == sorted(ground.hosts)
    for wave in plan.waves:
        assert 0 < len(wave.hosts) <= at_once
        check_domains(wave.hosts, ground)


@given(grounds(), st.integers(1, 5))
def test_chosen_hosts_respect_budgets_and_armed_domains(ground: HostSurvey, at_once: int) -> None:
    plan = over(ground, at_once=at_once)
    if not plan.left:
        return
    _, chosen = next_wave(plan, ground)
    check_domains(chosen, ground)
    for group, count in disturbed(chosen, ground).items():
        if group in ground.budgets:
            budget = ground.budgets[group]
            assert budget.members - len(budget.down) - count >= budget.needs
    for name in chosen:
        for group, domains in ground.footprints[name].counts.items():
            assert ground.armed.get(group, {}).keys() <= {min(domains)}


@given(grounds(), st.integers(1, 5))
def test_planning_twice_changes_nothing(ground: HostSurvey, at_once: int) -> None:
    plan = over(ground, at_once=at_once)
    assert planning.replan(plan, ground) == plan
    if plan.left:
        once, chosen = next_wave(plan, ground)
        assert next_wave(once, ground) == (once, chosen)


@given(grounds(), st.integers(1, 5))
def test_every_host_that_is_not_chosen_has_a_reason(ground: HostSurvey, at_once: int) -> None:
    plan = over(ground, at_once=at_once)
    if not plan.left:
        return
    once, chosen = next_wave(plan, ground)
    if chosen:
        once = planning.begin(once, {name: f"O-{name}" for name in chosen}, ground, now=NOW)  # type: ignore[misc]
        waiting = {wait.what for wait in planning.reasons(once, now=NOW)}
        assert all(name in waiting for name in once.left)
    else:
        candidates = Candidates(once, ground, Policy())
        assert all(candidates.why_not(name, now=NOW) for name in once.left)


@pytest.mark.parametrize("action", RolloutAction)
def test_a_rollout_places_orders_with_the_action_of_the_request(action: RolloutAction) -> None:
    plan = replace(over(survey(carries(web={0: 1}))), work=action.work)
    assert plan.action is action
    assert plan.ordered is (Action.SERVICE if action is RolloutAction.SERVICE else Action.MAINTENANCE)


def test_a_host_with_long_notice_is_announced_while_another_domain_is_armed() -> None:
    armed = {WEB: {0: ONE}}
    ground = survey(carries(web={1: 1}), armed=armed)
    assert Candidates(over(ground), ground, Policy()).why_not(host(1), now=NOW)
    early = replace(ground, notices={WEB: timedelta(hours=1)})
    assert Candidates(over(early), early, Policy()).why_not(host(1), now=NOW) == ()
