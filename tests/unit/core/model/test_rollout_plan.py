"""The plan of a rollout: reasons for small waves, hosts that a window would split, and racks."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

from forewarn.core.basic_types import GroupName, OrderState, ProjectName, ServiceMode, Work
from forewarn.core.model.constraints import Budget
from forewarn.core.model.project import Calendar, Project, Window
from forewarn.core.model.rollout import Rollout, RolloutState, RolloutTerms, Wave, WaveState
from forewarn.core.model.slice import HostSurvey
from forewarn.core.policy import Policy
from forewarn.core.redaction import unmarked
from forewarn.core.rollouts import evacuation, forecast, planning, progress, waves
from forewarn.core.rollouts.candidates import Candidates
from tests.unit.core.model.test_rollout import NOW, carries, host, over, survey
from tests.unit.rollouts import by_id, order

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
DEFAULT = ProjectName("default")
POLICY = Policy()


def bound(*windows: tuple[str, float], ground: HostSurvey) -> HostSurvey:
    """Return the same hosts with maintenance windows: their start and their length in hours."""
    every = frozenset(range(7))
    open_ = tuple(
        Window(days=every, start=time.fromisoformat(start), length=timedelta(hours=hours))
        for start, hours in windows
    )
    calendar = Calendar(windows=open_)
    return replace(ground, projects={DEFAULT: Project(name=DEFAULT, calendar=calendar)})


def at(text: str, *, days: int = 0) -> datetime:
    return datetime.combine(NOW.date(), time.fromisoformat(text), tzinfo=NOW.tzinfo) + days * DAY


# Reasons for small waves


def test_waves_limited_by_a_budget_name_the_group_and_its_spare_machines() -> None:
    budgets = {GroupName("db"): Budget(needs=1, members=4)}
    ground = survey(*(carries(db={0: 1}) for _ in range(4)), budgets=budgets)
    assert list(forecast.smaller_waves(over(ground, at_once=4), ground)) == [
        "1 of 2 waves has fewer than 4 hosts: group db can spare 3 at once"
    ]


def test_waves_limited_by_update_domains_name_the_group() -> None:
    ground = survey(carries(web={0: 1}), carries(web={1: 1}), carries(web={2: 1}))
    assert list(forecast.smaller_waves(over(ground, at_once=2), ground)) == [
        "2 of 3 waves have fewer than 2 hosts: two update domains of group web are not disturbed together"
    ]


def test_a_canary_wave_needs_a_reason_only_if_canaries_exclude_each_other() -> None:
    ground = survey(*(carries(web={0: 1}) for _ in range(3)))
    wanted = replace(over(ground, at_once=3), waves=())
    canary = planning.replan(replace(wanted, terms=replace(wanted.terms, canary=1)), ground)
    assert [len(wave.hosts) for wave in canary.planned] == [1, 2]
    assert list(forecast.smaller_waves(canary, ground)) == []
    apart = survey(carries(web={0: 1}), carries(web={1: 1}), carries(web={0: 1}))
    two = planning.replan(replace(wanted, terms=replace(wanted.terms, canary=2)), apart)
    assert list(forecast.smaller_waves(two, apart)) == [
        "1 of 3 waves has fewer than 3 hosts: two update domains of group web are not disturbed together"
    ]


def test_full_waves_and_the_last_wave_need_no_reason() -> None:
    ground = survey(*(carries(web={0: 1}) for _ in range(5)))
    assert list(forecast.smaller_waves(over(ground, at_once=2), ground)) == []


def test_the_first_reasons_for_small_waves_are_listed_and_the_others_counted() -> None:
    names = [f"g{number}" for number in range(7)]
    pairs = [carries(**{name: {domain: 1}}) for name in names for domain in (0, 1)]
    ground = survey(*pairs)
    alone = replace(over(ground), waves=tuple(Wave(hosts=(name,)) for name in ground.hosts))
    *first, last = forecast.smaller_waves(alone, ground)
    assert len(first) == forecast.MOST
    assert last == "3 more reasons for smaller waves"


def test_waves_limited_by_windows_name_them() -> None:
    ground = survey(carries(web={0: 1}), carries(web={0: 1}))
    apart = replace(over(ground), waves=(Wave(hosts=(host(1),)), Wave(hosts=(host(2),))))
    (said,) = forecast.smaller_waves(apart, ground)
    assert said.endswith("other hosts wait for the windows of their projects")


# Hosts that the end of a window would split

# A host with two update domains takes two stages, each fifteen minutes of notice and five of work.
TWO_STAGES = survey(carries(web={0: 1, 1: 1}))


def announced(ground: HostSurvey, now: datetime) -> datetime | None:
    return Candidates(over(ground), ground, POLICY).announce_at(host(1), now)


def test_a_host_does_not_begin_if_the_window_ends_before_its_last_stage() -> None:
    ground = bound(("22:00", 7), ground=TWO_STAGES)
    assert announced(ground, at("04:10")) == at("04:10")
    assert announced(ground, at("04:25")) == at("21:45")


def test_a_host_that_waits_for_a_longer_window_says_so() -> None:
    ground = bound(("22:00", 7), ground=TWO_STAGES)
    plan, chosen = planning.next_wave(over(ground), ground, now=at("04:25"), policy=POLICY)
    assert (chosen, plan.due_at) == ((), at("21:45"))
    (why,) = plan.waiting
    assert f"{why}" == (
        "host-1: would be cut by the end of a window; to fit into one, "
        f"it is announced at {at('21:45'):%Y-%m-%dT%H:%M:%SZ}"
    )


def test_a_host_that_waits_for_a_window_has_no_other_reason() -> None:
    ground = bound(("22:00", 7), ground=TWO_STAGES)
    plan, chosen = planning.next_wave(over(ground), ground, now=NOW, policy=POLICY)
    assert (chosen, plan.due_at) == ((), at("21:45"))
    assert [unmarked(wait.reason) for wait in plan.waiting] == [
        "outside the window of project default, which opens 2026-01-05 22:00 (UTC)"
    ]


def test_a_host_too_long_for_every_window_is_split_with_a_warning() -> None:
    ground = bound(("22:00", 0.25), ground=TWO_STAGES)
    plan, times = forecast.forecast(over(ground), ground, now=at("12:00"), policy=POLICY)
    assert [stage.start_at for stage in times[0].stages] == [at("22:00"), at("22:00", days=1)]
    (said,) = forecast.cut_hosts(plan, ground, times, policy=POLICY)
    assert said.startswith("host-1 is cut by the end of a window: its next stage is announced at ")
    assert f"{at('21:45', days=1):%Y-%m-%dT%H:%M:%SZ}" in said


def test_a_warning_covers_small_waves_and_split_hosts() -> None:
    ground = bound(("22:00", 0.25), ground=survey(carries(web={0: 1, 1: 1}), carries(web={0: 1})))
    plan, times = forecast.forecast(over(ground), ground, now=at("12:00"), policy=POLICY)
    small, cut = forecast.warnings(plan, ground, times, policy=POLICY)
    assert small.startswith("1 of 2 waves has fewer than 10 hosts: two update domains of group web")
    assert cut.startswith("host-1 is cut by the end of a window")


def test_a_host_is_split_if_that_finishes_it_earlier() -> None:
    # Its second stage fits into tonight's window; both together fit only two days later.
    short = Window(days=frozenset(range(7)), start=time(22), length=15 * MINUTE)
    long = Window(days=frozenset({(NOW + 2 * DAY).weekday()}), start=time(10), length=2 * 60 * MINUTE)
    project = Project(name=DEFAULT, calendar=Calendar(windows=(short, long)))
    ground = replace(TWO_STAGES, projects={DEFAULT: project})
    assert announced(ground, at("12:00")) == at("21:45")


def test_a_host_with_one_stage_begins_if_the_stage_fits() -> None:
    ground = bound(("22:00", 7), ground=survey(carries(web={0: 1})))
    assert announced(ground, at("04:25")) == at("04:25")


# One plan


def test_the_saved_plan_has_the_waves_that_fit_the_windows() -> None:
    quiet, busy = ProjectName("quiet"), ProjectName("busy")
    ground = survey(
        replace(carries(web={0: 1}), projects=frozenset({quiet})),
        replace(carries(web={0: 1}), projects=frozenset({busy})),
    )
    night = Calendar(windows=(Window(days=frozenset(range(7)), start=time(2), length=60 * MINUTE),))
    ground = replace(ground, projects={quiet: Project(name=quiet, calendar=night), busy: Project(name=busy)})
    plan = forecast.arrange_by_windows(over(ground), ground, now=NOW, policy=POLICY)
    assert [wave.hosts for wave in plan.waves] == [(host(2),), (host(1),)]
    times = forecast.wave_times(plan, ground, now=NOW, policy=POLICY)
    assert len(times) == len(plan.planned)
    assert times == forecast.forecast(plan, ground, now=NOW, policy=POLICY)[1]


def test_without_windows_the_plan_does_not_change() -> None:
    ground = survey(carries(web={0: 1}), carries(web={1: 1}))
    plan = over(ground)
    assert forecast.arrange_by_windows(plan, ground, now=NOW, policy=POLICY) is plan


def test_a_wave_takes_as_long_as_its_slowest_host() -> None:
    slow, quick = GroupName("slow"), GroupName("quick")
    ground = survey(
        carries(slow={0: 1}), carries(quick={0: 1, 1: 1}), notices={slow: 60 * MINUTE, quick: 20 * MINUTE}
    )
    (wave,) = forecast.wave_times(over(ground), ground, now=NOW, policy=POLICY)
    assert [stage.start_at - NOW for stage in wave.stages] == [60 * MINUTE, 45 * MINUTE]
    assert (wave.start_at - NOW, wave.end_at - NOW) == (60 * MINUTE, 65 * MINUTE)
    ends = forecast.ends_about(over(ground), ground.hosts, ground, now=NOW, policy=POLICY)
    assert ends == wave.end_at


def in_projects(*calendars: Calendar) -> HostSurvey:
    """Make hosts with machines of one project each, which has these windows."""
    names = [ProjectName(f"p{number}") for number in range(len(calendars))]
    known = {
        name: Project(name=name, calendar=calendar) for name, calendar in zip(names, calendars, strict=True)
    }
    footprints = (replace(carries(web={0: 1}), projects=frozenset({name})) for name in names)
    return survey(*footprints, projects=known)


def daily(start: int, length: timedelta) -> Calendar:
    return Calendar(windows=(Window(days=frozenset(range(7)), start=time(start), length=length),))


def test_hosts_too_long_for_every_window_come_last_without_an_estimate() -> None:
    ground = in_projects(daily(14, MINUTE), daily(14, 60 * MINUTE))
    plan, times = forecast.forecast(over(ground), ground, now=NOW, policy=POLICY)
    assert [wave.hosts for wave in plan.waves] == [(host(2),), (host(1),)]
    assert [each.start_at for each in times] == [at("14:00")]
    assert forecast.wave_times(plan, ground, now=NOW, policy=POLICY) == times


def test_hosts_of_one_wave_without_a_common_window_have_no_estimate() -> None:
    apart = in_projects(daily(14, 60 * MINUTE), daily(16, 60 * MINUTE))
    assert forecast.wave_times(over(apart), apart, now=NOW, policy=POLICY) == ()
    near = in_projects(daily(14, 60 * MINUTE), daily(14, 30 * MINUTE))
    (wave,) = forecast.wave_times(over(near), near, now=NOW, policy=POLICY)
    assert wave.start_at == at("14:00")


def test_a_window_does_not_raise_hosts_at_once() -> None:
    ground = in_projects(*(daily(14, 60 * MINUTE) for _ in range(3)))
    plan, times = forecast.forecast(over(ground, at_once=2), ground, now=NOW, policy=POLICY)
    assert [wave.hosts for wave in plan.waves] == [(host(1), host(2)), (host(3),)]
    assert [each.announce_at for each in times] == [at("13:45"), at("14:05")]


# Finished hosts


def test_hosts_of_finished_waves_are_done_unless_abandoned() -> None:
    plan = over(survey(*(carries(web={0: 1}) for _ in range(4))), at_once=2)
    done, planned = plan.waves
    rollout = replace(plan, waves=(replace(done, state=WaveState.DONE), planned), abandoned=(host(2),))
    assert rollout.hosts_done == (host(1),)
    assert rollout.hosts_not_done == (host(2), host(3), host(4))


def test_a_host_that_was_abandoned_while_its_rollout_was_aborted_is_not_done() -> None:
    plan = over(survey(carries(web={0: 1}), carries(web={0: 1})))
    orders = by_id(order(1, OrderState.DONE), order(2, OrderState.FAILED))
    begun = Wave(hosts=(host(1), host(2)), orders=tuple(orders), state=WaveState.STARTED)
    rollout: Rollout = replace(plan, waves=(begun,), aborting=True)
    ended = progress.settle(rollout, orders, now=NOW)
    assert (ended.state, ended.hosts_done, ended.hosts_not_done) == (
        RolloutState.ABORTED,
        (host(1),),
        (host(2),),
    )


def test_a_host_whose_order_failed_is_not_done() -> None:
    plan = over(survey(carries(web={0: 1}), carries(web={0: 1})))
    orders = by_id(order(1, OrderState.DONE), order(2, OrderState.CANCELLED, ended_at=NOW))
    begun = Wave(hosts=(host(1), host(2)), orders=tuple(orders), state=WaveState.STARTED)
    settled = progress.settle(replace(plan, waves=(begun,)), orders, now=NOW)
    assert (settled.state, settled.waves[0].state) == (RolloutState.RUNNING, WaveState.DONE)
    assert (settled.hosts_done, settled.hosts_not_done) == ((host(1),), (host(2),))


# The saved plan


def crown() -> HostSurvey:
    """Make six hosts that fit into two waves, or into three if each joins the first wave that it fits."""
    edges = [(one, other) for one in (1, 3, 5) for other in (2, 4, 6) if other != one + 1]
    carried: dict[int, dict[str, dict[int, int]]] = {number: {} for number in range(1, 7)}
    for number, (one, other) in enumerate(edges):
        carried[one][f"g{number}"] = {0: 1}
        carried[other][f"g{number}"] = {1: 1}
    return survey(*(carries(**groups) for groups in carried.values()))


def test_the_forecast_uses_the_waves_of_the_plan() -> None:
    ground = crown()
    planned = over(ground)
    assert [len(wave.hosts) for wave in planned.waves] == [3, 3]
    forecasted, expected = forecast.forecast(planned, ground, now=NOW, policy=POLICY)
    assert (forecasted.waves, len(expected)) == (planned.waves, 2)


def test_a_waiting_host_does_not_change_the_rest_of_the_plan() -> None:
    ground = crown()
    held = replace(ground, orders={host(1): order(9, OrderState.STARTED)})
    going_on, chosen = planning.next_wave(over(ground), held, now=NOW, policy=POLICY)
    assert chosen == (host(3), host(5))
    assert [wave.hosts for wave in going_on.waves] == [
        (host(3), host(5)),
        (host(1),),
        (host(2), host(4), host(6)),
    ]


def in_racks(*racks: str) -> HostSurvey:
    """Make hosts without conflicts, each in a rack."""
    ground = survey(*(carries(web={0: 1}) for _ in racks))
    labels = dict(zip(ground.hosts, racks, strict=True))
    hosts = {name: replace(each, labels={"rack": labels[name]}) for name, each in ground.hosts.items()}
    return replace(ground, hosts=hosts, racks=Counter(racks), sizes={GroupName("web"): len(racks)})


def waves_over(ground: HostSurvey, work: Work, *, at_once: int = 9, **more: Any) -> list[int]:
    asked = replace(over(ground, at_once=at_once), work=work, waves=(), **more)
    return [len(wave.hosts) for wave in waves.cut(asked, ground, asked.left)]


def test_a_wave_empties_no_more_than_half_of_a_rack() -> None:
    ground = in_racks(*"aaaaabbbb")
    assert waves_over(ground, Work.REDEPLOY) == [5, 4]
    assert waves_over(ground, Work.HOST) == [5, 4]
    in_place = RolloutTerms(mode=ServiceMode.IN_PLACE)
    assert waves_over(ground, Work.HOST, terms=in_place) == waves_over(ground, Work.REBOOT) == [9]


def test_a_small_rack_may_be_emptied_completely() -> None:
    assert waves_over(in_racks(*"abbccc"), Work.REDEPLOY) == [6]


def test_standalone_machines_may_leave_a_whole_rack() -> None:
    assert waves_over(replace(in_racks(*"aaaa"), sizes={}), Work.REDEPLOY) == [4]


def test_the_plan_says_that_it_splits_racks() -> None:
    ground = in_racks(*"aaaa")
    asked = replace(over(ground, at_once=4), work=Work.REDEPLOY)
    asked = replace(asked, waves=waves.cut(asked, ground, asked.left))
    (said,) = forecast.more_waves_to_empty(asked, ground)
    assert said == f"2 waves instead of 1: {evacuation.HALF_OF_A_RACK}"
    assert f"1 of 2 waves has fewer than 4 hosts: {evacuation.HALF_OF_A_RACK}" in [
        *forecast.smaller_waves(asked, ground)
    ]
    assert list(forecast.more_waves_to_empty(over(ground, at_once=4), ground)) == []
    assert list(forecast.more_waves_to_empty(replace(asked, hosts_at_once=2), ground)) == []


def test_a_waiting_host_does_not_let_more_hosts_of_its_rack_begin() -> None:
    ground = in_racks(*"aaaabb")
    asked = replace(over(ground, at_once=9), work=Work.REDEPLOY)
    asked = replace(asked, waves=waves.cut(asked, ground, asked.left))
    held = replace(ground, orders={host(1): order(9, OrderState.STARTED)})
    _, chosen = planning.next_wave(asked, held, now=NOW, policy=POLICY)
    assert chosen == (host(2), host(5), host(6), host(3))
