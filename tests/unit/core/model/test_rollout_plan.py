"""The plan of a rollout: why waves are small, hosts that a window would cut, and one plan for everybody."""

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
from forewarn.core.rollouts import emptying, forecast, planning, progress, waves
from forewarn.core.rollouts.candidates import Candidates
from tests.unit.core.model.test_rollout import NOW, carries, host, over, survey
from tests.unit.rollouts import by_id, order

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
DEFAULT = ProjectName("default")
POLICY = Policy()


def bound(*windows: tuple[str, float], ground: HostSurvey) -> HostSurvey:
    """The same hosts, which may be disturbed only in these windows: from when on, and for how many hours."""
    every = frozenset(range(7))
    open_ = tuple(
        Window(days=every, start=time.fromisoformat(start), length=timedelta(hours=hours))
        for start, hours in windows
    )
    calendar = Calendar(windows=open_)
    return replace(ground, projects={DEFAULT: Project(name=DEFAULT, calendar=calendar)})


def at(text: str, *, days: int = 0) -> datetime:
    return datetime.combine(NOW.date(), time.fromisoformat(text), tzinfo=NOW.tzinfo) + days * DAY


# Why waves are small


def test_waves_that_a_budget_keeps_small_say_which_group_can_spare_how_many() -> None:
    budgets = {GroupName("db"): Budget(needs=1, members=4)}
    ground = survey(*(carries(db={0: 1}) for _ in range(4)), budgets=budgets)
    assert list(forecast.smaller_waves(over(ground, at_once=4), ground)) == [
        "1 of 2 waves has fewer than 4 hosts: group db can spare 3 at once"
    ]


def test_waves_that_update_domains_keep_small_say_of_which_group() -> None:
    ground = survey(carries(web={0: 1}), carries(web={1: 1}), carries(web={2: 1}))
    assert list(forecast.smaller_waves(over(ground, at_once=2), ground)) == [
        "2 of 3 waves have fewer than 2 hosts: two update domains of group web are not disturbed together"
    ]


def test_a_wave_of_canaries_needs_no_reason_to_be_small_but_for_what_keeps_canaries_apart() -> None:
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


def test_waves_that_are_full_and_a_last_one_that_is_not_need_no_reason() -> None:
    ground = survey(*(carries(web={0: 1}) for _ in range(5)))
    assert list(forecast.smaller_waves(over(ground, at_once=2), ground)) == []


def test_of_many_reasons_for_small_waves_the_first_are_said_and_the_others_counted() -> None:
    names = [f"g{number}" for number in range(7)]
    pairs = [carries(**{name: {domain: 1}}) for name in names for domain in (0, 1)]
    ground = survey(*pairs)
    alone = replace(over(ground), waves=tuple(Wave(hosts=(name,)) for name in ground.hosts))
    *first, last = forecast.smaller_waves(alone, ground)
    assert len(first) == forecast.MOST
    assert last == "3 more reasons for smaller waves"


def test_waves_that_windows_keep_small_say_so() -> None:
    ground = survey(carries(web={0: 1}), carries(web={0: 1}))
    apart = replace(over(ground), waves=(Wave(hosts=(host(1),)), Wave(hosts=(host(2),))))
    (said,) = forecast.smaller_waves(apart, ground)
    assert said.endswith("other hosts wait for the windows of their projects")


# Hosts that the end of a window would cut

# A host with two update domains takes two stages, each fifteen minutes of notice and five of work.
TWO_STAGES = survey(carries(web={0: 1, 1: 1}))


def announced(ground: HostSurvey, now: datetime) -> datetime | None:
    return Candidates(over(ground), ground, POLICY).announce_at(host(1), now)


def test_a_host_is_not_begun_so_late_that_the_end_of_the_window_would_cut_it() -> None:
    ground = bound(("22:00", 7), ground=TWO_STAGES)
    assert announced(ground, at("04:10")) == at("04:10")
    assert announced(ground, at("04:25")) == at("21:45")


def test_one_that_waits_so_says_why() -> None:
    ground = bound(("22:00", 7), ground=TWO_STAGES)
    plan, chosen = planning.next_wave(over(ground), ground, now=at("04:25"), policy=POLICY)
    assert (chosen, plan.due_at) == ((), at("21:45"))
    (why,) = plan.waiting
    assert f"{why}" == (
        "host-1: would be cut by the end of a window; done whole, "
        f"it is announced at {at('21:45'):%Y-%m-%dT%H:%M:%SZ}"
    )


def test_one_that_waits_for_a_window_waits_for_that_alone() -> None:
    ground = bound(("22:00", 7), ground=TWO_STAGES)
    plan, chosen = planning.next_wave(over(ground), ground, now=NOW, policy=POLICY)
    assert (chosen, plan.due_at) == ((), at("21:45"))
    assert [unmarked(wait.reason) for wait in plan.waiting] == [
        "outside the window of project default, which opens 2026-01-05 22:00 (UTC)"
    ]


def test_a_host_that_no_window_has_room_for_is_cut_and_that_is_warned_of() -> None:
    ground = bound(("22:00", 0.25), ground=TWO_STAGES)
    plan, times = forecast.forecast(over(ground), ground, now=at("12:00"), policy=POLICY)
    assert [stage.start_at for stage in times[0].stages] == [at("22:00"), at("22:00", days=1)]
    (said,) = forecast.cut_hosts(plan, ground, times, policy=POLICY)
    assert said.startswith("host-1 is cut by the end of a window: its next stage is announced at ")
    assert f"{at('21:45', days=1):%Y-%m-%dT%H:%M:%SZ}" in said


def test_small_waves_and_cut_hosts_are_warned_of_together() -> None:
    ground = bound(("22:00", 0.25), ground=survey(carries(web={0: 1, 1: 1}), carries(web={0: 1})))
    plan, times = forecast.forecast(over(ground), ground, now=at("12:00"), policy=POLICY)
    small, cut = forecast.warnings(plan, ground, times, policy=POLICY)
    assert small.startswith("1 of 2 waves has fewer than 10 hosts: two update domains of group web")
    assert cut.startswith("host-1 is cut by the end of a window")


def test_a_host_is_rather_cut_than_kept_until_long_after_its_rest_would_come() -> None:
    # The rest of it fits into tonight's window; the whole only into that of the day after tomorrow.
    short = Window(days=frozenset(range(7)), start=time(22), length=15 * MINUTE)
    long = Window(days=frozenset({(NOW + 2 * DAY).weekday()}), start=time(10), length=2 * 60 * MINUTE)
    project = Project(name=DEFAULT, calendar=Calendar(windows=(short, long)))
    ground = replace(TWO_STAGES, projects={DEFAULT: project})
    assert announced(ground, at("12:00")) == at("21:45")


def test_a_host_with_one_stage_is_begun_as_long_as_that_fits() -> None:
    ground = bound(("22:00", 7), ground=survey(carries(web={0: 1})))
    assert announced(ground, at("04:25")) == at("04:25")


# One plan


def test_the_plan_that_is_kept_has_the_waves_that_windows_make_of_it() -> None:
    quiet, busy = ProjectName("quiet"), ProjectName("busy")
    ground = survey(
        replace(carries(web={0: 1}), projects=frozenset({quiet})),
        replace(carries(web={0: 1}), projects=frozenset({busy})),
    )
    night = Calendar(windows=(Window(days=frozenset(range(7)), start=time(2), length=60 * MINUTE),))
    ground = replace(ground, projects={quiet: Project(name=quiet, calendar=night), busy: Project(name=busy)})
    plan = forecast.arrange_by_windows(over(ground), ground, now=NOW, policy=POLICY)
    assert [wave.hosts for wave in plan.waves] == [(host(2),), (host(1),)]
    times = forecast.times(plan, ground, now=NOW, policy=POLICY)
    assert len(times) == len(plan.planned)
    assert times == forecast.forecast(plan, ground, now=NOW, policy=POLICY)[1]


def test_without_windows_the_plan_stays_as_it_was_cut() -> None:
    ground = survey(carries(web={0: 1}), carries(web={1: 1}))
    plan = over(ground)
    assert forecast.arrange_by_windows(plan, ground, now=NOW, policy=POLICY) is plan


def test_a_wave_is_as_slow_as_its_slowest_host() -> None:
    slow, quick = GroupName("slow"), GroupName("quick")
    ground = survey(
        carries(slow={0: 1}), carries(quick={0: 1, 1: 1}), notices={slow: 60 * MINUTE, quick: 20 * MINUTE}
    )
    (wave,) = forecast.times(over(ground), ground, now=NOW, policy=POLICY)
    assert [stage.start_at - NOW for stage in wave.stages] == [60 * MINUTE, 45 * MINUTE]
    assert (wave.start_at - NOW, wave.end_at - NOW) == (60 * MINUTE, 65 * MINUTE)
    ends = forecast.ends_about(over(ground), ground.hosts, ground, now=NOW, policy=POLICY)
    assert ends == wave.end_at


def in_projects(*calendars: Calendar) -> HostSurvey:
    """Hosts that carry machines of a project each, which may be disturbed at these times."""
    names = [ProjectName(f"p{number}") for number in range(len(calendars))]
    known = {
        name: Project(name=name, calendar=calendar) for name, calendar in zip(names, calendars, strict=True)
    }
    footprints = (replace(carries(web={0: 1}), projects=frozenset({name})) for name in names)
    return survey(*footprints, projects=known)


def daily(start: int, length: timedelta) -> Calendar:
    return Calendar(windows=(Window(days=frozenset(range(7)), start=time(start), length=length),))


def test_hosts_that_no_window_has_room_for_come_last_and_are_not_expected() -> None:
    ground = in_projects(daily(14, MINUTE), daily(14, 60 * MINUTE))
    plan, times = forecast.forecast(over(ground), ground, now=NOW, policy=POLICY)
    assert [wave.hosts for wave in plan.waves] == [(host(2),), (host(1),)]
    assert [each.start_at for each in times] == [at("14:00")]
    assert forecast.times(plan, ground, now=NOW, policy=POLICY) == times


def test_hosts_that_were_planned_together_and_are_never_free_together_are_not_expected() -> None:
    apart = in_projects(daily(14, 60 * MINUTE), daily(16, 60 * MINUTE))
    assert forecast.times(over(apart), apart, now=NOW, policy=POLICY) == ()
    near = in_projects(daily(14, 60 * MINUTE), daily(14, 30 * MINUTE))
    (wave,) = forecast.times(over(near), near, now=NOW, policy=POLICY)
    assert wave.start_at == at("14:00")


def test_a_window_lets_no_more_hosts_go_at_once_than_may() -> None:
    ground = in_projects(*(daily(14, 60 * MINUTE) for _ in range(3)))
    plan, times = forecast.forecast(over(ground, at_once=2), ground, now=NOW, policy=POLICY)
    assert [wave.hosts for wave in plan.waves] == [(host(1), host(2)), (host(3),)]
    assert [each.announce_at for each in times] == [at("13:45"), at("14:05")]


# What is done


def test_hosts_are_done_whose_wave_is_over_and_that_were_not_abandoned() -> None:
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


def test_a_host_whose_order_came_to_nothing_is_not_done_before_anybody_resumes() -> None:
    plan = over(survey(carries(web={0: 1}), carries(web={0: 1})))
    orders = by_id(order(1, OrderState.DONE), order(2, OrderState.CANCELLED, ended_at=NOW))
    begun = Wave(hosts=(host(1), host(2)), orders=tuple(orders), state=WaveState.STARTED)
    settled = progress.settle(replace(plan, waves=(begun,)), orders, now=NOW)
    assert (settled.state, settled.waves[0].state) == (RolloutState.RUNNING, WaveState.DONE)
    assert (settled.hosts_done, settled.hosts_not_done) == ((host(1),), (host(2),))


# One plan, kept


def crown() -> HostSurvey:
    """Six hosts that two waves hold, but three if each joins the first wave that it fits, in their order."""
    edges = [(one, other) for one in (1, 3, 5) for other in (2, 4, 6) if other != one + 1]
    carried: dict[int, dict[str, dict[int, int]]] = {number: {} for number in range(1, 7)}
    for number, (one, other) in enumerate(edges):
        carried[one][f"g{number}"] = {0: 1}
        carried[other][f"g{number}"] = {1: 1}
    return survey(*(carries(**groups) for groups in carried.values()))


def test_the_forecast_keeps_the_waves_of_the_plan() -> None:
    ground = crown()
    planned = over(ground)
    assert [len(wave.hosts) for wave in planned.waves] == [3, 3]
    forecasted, expected = forecast.forecast(planned, ground, now=NOW, policy=POLICY)
    assert (forecasted.waves, len(expected)) == (planned.waves, 2)


def test_a_host_that_must_wait_leaves_the_rest_of_the_plan_as_it_is() -> None:
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
    """Hosts that may all be done together, each in a rack."""
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


def test_small_racks_are_emptied_whole() -> None:
    assert waves_over(in_racks(*"abbccc"), Work.REDEPLOY) == [6]


def test_machines_that_stand_alone_may_leave_a_whole_rack() -> None:
    assert waves_over(replace(in_racks(*"aaaa"), sizes={}), Work.REDEPLOY) == [4]


def test_the_plan_says_that_it_halves_racks() -> None:
    ground = in_racks(*"aaaa")
    asked = replace(over(ground, at_once=4), work=Work.REDEPLOY)
    asked = replace(asked, waves=waves.cut(asked, ground, asked.left))
    (said,) = forecast.more_waves_to_empty(asked, ground)
    assert said == f"2 waves instead of 1: {emptying.HALF_OF_A_RACK}"
    assert f"1 of 2 waves has fewer than 4 hosts: {emptying.HALF_OF_A_RACK}" in [
        *forecast.smaller_waves(asked, ground)
    ]
    assert list(forecast.more_waves_to_empty(over(ground, at_once=4), ground)) == []
    assert list(forecast.more_waves_to_empty(replace(asked, hosts_at_once=2), ground)) == []


def test_a_host_that_must_wait_lets_no_more_of_its_rack_come() -> None:
    ground = in_racks(*"aaaabb")
    asked = replace(over(ground, at_once=9), work=Work.REDEPLOY)
    asked = replace(asked, waves=waves.cut(asked, ground, asked.left))
    held = replace(ground, orders={host(1): order(9, OrderState.STARTED)})
    _, chosen = planning.next_wave(asked, held, now=NOW, policy=POLICY)
    assert chosen == (host(2), host(5), host(6), host(3))
