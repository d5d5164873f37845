"""Maintenance and rollouts that wait for the windows of projects, with a manual clock."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from forewarn.control.orders.order_use_cases import Placed
from forewarn.control.rollouts.rollout_views import RolloutRequest
from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    EventStatus,
    HostName,
    Kind,
    ProjectName,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import OrderTerms
from forewarn.core.model.project import Calendar, Project, Window
from forewarn.core.model.rollout import RolloutState, RolloutTerms
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.redaction import unmarked
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import START, Service, fleet, group, machine
from tests.helpers.service.refused import refused

SHOP, BANK = ProjectName("shop"), ProjectName("bank")
EVERY_DAY = frozenset(range(7))


def open_at(start: str, hours: float, *days: str) -> Calendar:
    """A daily window that is closed on these days; histories begin on a Monday at noon."""
    window = Window(days=EVERY_DAY, start=time.fromisoformat(start), length=timedelta(hours=hours))
    return Calendar(windows=(window,), blackout=frozenset(date.fromisoformat(day) for day in days))


def declared(shop: Calendar, bank: Calendar = Calendar()) -> FleetSpec:  # noqa: B008 - frozen
    """One host for each project, and one that both share."""
    spec = fleet(
        machine("web-0", "host-1", project=SHOP),
        machine("web-1", "host-2", project=SHOP),
        machine("vault", "host-2", project=BANK),
        machine("till", "host-3", project=BANK),
    )
    projects = (
        Project(name=DEFAULT_PROJECT),
        Project(name=SHOP, calendar=shop),
        Project(name=BANK, calendar=bank),
    )
    return replace(spec, projects=projects)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with closing(Service(sqlite_url(tmp_path))) as service:
        yield service


def maintain(service: Service, host: str, **terms: Any) -> Placed:
    request = OrderRequest(by="test", terms=OrderTerms(**terms))
    placed = service.fleet.hosts.order_host(host, Action.MAINTENANCE, request, work=Work.REBOOT)
    service.tick()
    return placed


def reasons_of(service: Service, placed: Placed) -> list[str]:
    return [unmarked(str(wait)) for wait in service.reload(placed).waiting]


def started_at(service: Service) -> list[datetime]:
    return [record.at for record in service.history() if record.kind == Kind.EVENT_STARTED]


OUTSIDE = "outside the window of project shop, which opens 2026-01-05 14:00 (UTC)"


def test_the_reason_names_the_opening_by_the_clock_of_the_project_and_holds_until_then(
    service: Service,
) -> None:
    berlin = replace(open_at("02:00", 2), zone=ZoneInfo("Europe/Berlin"))
    service.apply(declared(berlin))
    placed = maintain(service, "host-1")
    before = reasons_of(service, placed)
    outside = "outside the window of project shop, which opens 2026-01-06 02:00 (Europe/Berlin)"
    assert before == [f"host-1: {outside}"]
    service.advance(hours=12)
    service.work_on(placed.order.id)
    assert reasons_of(service, placed) == before


def test_events_are_announced_in_time_for_the_window_and_not_earlier(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    placed = maintain(service, "host-1")
    assert reasons_of(service, placed) == [f"host-1: {OUTSIDE}"]
    service.advance(minutes=104)
    assert service.events("web-0") == []
    service.advance(minutes=1)
    [event] = service.events("web-0")
    assert event.not_before == START + timedelta(hours=2)
    service.advance(minutes=15)
    assert started_at(service) == [START + timedelta(hours=2)]


def test_an_approval_never_starts_work_outside_the_window(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    service.poll("web-0")
    placed = maintain(service, "host-1")
    service.advance(minutes=105)
    service.approve("web-0", *service.events("web-0"))
    assert reasons_of(service, placed) == [f"host-1: {OUTSIDE}"]
    service.advance(minutes=15)
    assert started_at(service) == [START + timedelta(hours=2)]


def test_an_approval_in_the_window_starts_it_early(service: Service) -> None:
    service.apply(declared(open_at("11:00", 2)))
    service.poll("web-0")
    maintain(service, "host-1")
    service.approve("web-0", *service.events("web-0"))
    assert started_at(service) == [START]


def test_work_that_would_exceed_the_window_waits_for_the_next_day(service: Service) -> None:
    service.apply(declared(open_at("11:00", 1.3)))  # it closes at 12:18; notice and work take 20 minutes
    maintain(service, "host-1")
    service.advance(hours=24)
    assert started_at(service) == [START + timedelta(hours=23)]


def test_work_that_missed_its_window_is_announced_again_for_the_next(service: Service) -> None:
    service.apply(declared(open_at("12:10", 0.4)))
    placed = maintain(service, "host-1")
    hold = service.fleet.hosts.hold(OrderRequest(by="test", reason="wait"), project=None, host=None)
    service.advance(minutes=30)
    service.fleet.hosts.release(hold.id, by="test")
    service.tick()
    outside = "outside the window of project shop, which opens 2026-01-06 12:10 (UTC)"
    assert f"host-1: {outside}" in reasons_of(service, placed)
    service.advance(hours=24)
    kinds = [record.kind for record in service.history() if record.kind.startswith("event")]
    assert kinds.count(Kind.EVENT_WITHDRAWN) == 1
    assert started_at(service) == [START + timedelta(hours=24, minutes=10)]


def test_all_projects_on_a_host_must_be_open(service: Service) -> None:
    service.apply(declared(open_at("14:00", 4), open_at("16:00", 4)))
    maintain(service, "host-2")
    service.advance(hours=6)
    assert started_at(service) == [START + timedelta(hours=4)] * 2


def test_windows_that_never_overlap_are_refused_unless_there_is_a_deadline(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2), open_at("16:00", 2)))
    why = "host host-2: projects bank and shop have no window in common with room for 5 m of work"
    with refused(Invalid, match=why):
        maintain(service, "host-2")
    with refused(Invalid, match="host-2: projects bank and shop have no window in common"):
        service.roll("host-1", "host-2")
    maintain(service, "host-2", deadline=START + timedelta(hours=1))
    service.advance(hours=2)
    assert started_at(service) == [START + timedelta(hours=1, minutes=15)] * 2


def test_a_window_that_is_too_short_for_the_work_is_refused(service: Service) -> None:
    service.apply(declared(open_at("14:00", 0.05)))
    with refused(Invalid, match="project shop has no window with room for 5 m of work"):
        maintain(service, "host-1")
    maintain(service, "host-1", expected=timedelta(seconds=60))
    service.advance(hours=3)
    assert started_at(service) == [START + timedelta(hours=2)]


def test_work_that_takes_long_needs_a_longer_window(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    with pytest.raises(Invalid, match="room for 2 h of work"):
        service.roll("host-1", terms=RolloutTerms(expected=timedelta(hours=2)))
    rollout = service.roll("host-1", terms=RolloutTerms(expected=timedelta(hours=1)))
    service.advance(hours=3)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_deadline_that_has_passed_is_refused(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    with pytest.raises(Invalid, match="deadline: expected a time in the next ten years"):
        maintain(service, "host-1", deadline=START)
    with pytest.raises(Invalid, match="deadline: expected a time in the next ten years"):
        maintain(service, "host-1", deadline=datetime(9999, 12, 31, tzinfo=UTC))


def test_a_budget_that_can_never_be_met_is_refused_unless_it_is_an_emergency(service: Service) -> None:
    web = replace(group("web"), policy=GroupPolicy(budget=2))
    members = (
        machine(name, host, group="web") for name, host in (("a", "host-1"), ("b", "host-1"), ("c", "host-2"))
    )
    service.apply(fleet(web, *members))
    never = (
        "group web: needs 2 healthy of 3, but host-1 carries 2 of one update domain: this can never be met"
    )
    with pytest.raises(Invalid, match=never):
        maintain(service, "host-1")
    maintain(service, "host-1", emergency="fire")
    assert started_at(service) == [START]


def test_an_emergency_ignores_windows(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    maintain(service, "host-1", emergency="fire")
    assert started_at(service) == [START]


def test_wider_windows_wake_waiting_work(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    maintain(service, "host-1")
    assert service.apply(declared(open_at("11:00", 5))) == ("~ project shop: windows",)
    service.tick()
    assert len(service.events("web-0")) == 1


def test_a_guest_cannot_defer_an_event_past_its_window_or_deadline(service: Service) -> None:
    spec = declared(open_at("11:00", 2))
    web = replace(group("web"), project=SHOP, policy=GroupPolicy(defer=timedelta(hours=3)))
    member = machine("front", "host-1", group="web", project=SHOP)
    spec = replace(spec, groups=(web,), machines=(*spec.machines, member))
    service.apply(spec)
    service.poll("front")
    maintain(service, "host-1")
    [event] = service.events("front")
    service.fleet.guests.defer(service.machine("front").id, {event.id: 7200})
    # The window closes at one. Five minutes of work must fit, and a tick may be half a minute late.
    assert service.events("front")[0].not_before == START + timedelta(minutes=54, seconds=30)


def test_a_guest_cannot_defer_an_event_past_the_deadline_of_its_order(service: Service) -> None:
    web = replace(group("web"), policy=GroupPolicy(defer=timedelta(hours=3)))
    members = (machine("front", "host-1", group="web"), machine("late", "host-2", group="web"))
    service.apply(fleet(web, *members))
    service.poll("front")
    maintain(service, "host-1", deadline=START + timedelta(minutes=20))
    [event] = service.events("front")
    service.fleet.guests.defer(service.machine("front").id, {event.id: 7200})
    assert service.events("front")[0].not_before == START + timedelta(minutes=20)
    other = maintain(service, "host-2", deadline=START + timedelta(minutes=10))
    [late] = other.events
    with pytest.raises(Conflict, match="cannot be deferred: it must start by 2026-01-05T12:10:00Z"):
        service.fleet.guests.defer(service.machine("late").id, {late.id: 60})


# Rollouts


def waiting(service: Service, id_: str) -> list[str]:
    return [unmarked(str(wait)) for wait in service.rollouts.rollout(id_).waiting]


def test_a_rollout_takes_hosts_with_open_windows_first(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    rollout = service.roll()
    assert [event.status for event in service.events("till")] == [EventStatus.SCHEDULED]
    assert f"host-1: {OUTSIDE}" in waiting(service, rollout.id)
    service.advance(hours=4)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert started_at(service) == [
        START + timedelta(minutes=15),
        START + timedelta(hours=2),
        *[START + timedelta(hours=2, minutes=20)] * 2,
    ]


def test_the_plan_knows_the_windows(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    plan = service.rollouts.plan(RolloutRequest(hosts=None, work=Work.REBOOT, by="test"))
    assert [wave.hosts for wave in plan.rollout.waves] == [("host-3",), ("host-1",), ("host-2",)]
    assert [when.start_at - START for when in plan.expected] == [
        timedelta(minutes=15),
        timedelta(hours=2),
        timedelta(hours=2, minutes=20),
    ]
    rollout = service.roll(work=Work.REBOOT)
    service.advance(hours=4)
    assert service.rollout(rollout).ended_at == plan.expected[-1].end_at


def test_every_request_shows_the_same_number_of_waves(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    request = RolloutRequest(hosts=None, work=Work.REBOOT, hosts_at_once=3, by="test")
    # Without windows two hosts could be done together.
    planned = [wave.hosts for wave in service.rollouts.plan(request).rollout.waves]
    assert planned == [("host-3",), ("host-1", "host-2")]
    rollout = service.rollouts.begin(request).rollout
    for _ in range(3):
        (listed,), _ = service.rollouts.rollouts(after=None, limit=9)
        shown = service.rollouts.rollout(rollout.id, expected=True)
        assert [wave.hosts for wave in listed.rollout.waves] == planned
        assert [wave.hosts for wave in shown.rollout.waves] == planned
        service.advance(hours=1)


def test_at_its_deadline_a_rollout_waits_for_no_window(service: Service) -> None:
    service.apply(declared(open_at("23:00", 1)))
    rollout = service.roll("host-1", terms=RolloutTerms(deadline=START + timedelta(hours=1)))
    service.advance(minutes=59)
    assert service.events("web-0") == []
    service.advance(minutes=1)
    [event] = service.events("web-0")
    assert event.not_before == START + timedelta(hours=1, minutes=15)
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_rollout_over_a_blackout_continues_the_day_after(service: Service) -> None:
    service.apply(declared(Calendar(blackout=frozenset({START.date()}), zone=UTC)))
    rollout = service.roll("host-1")
    service.advance(hours=13)
    assert started_at(service) == [datetime(2026, 1, 6, tzinfo=UTC)]
    assert service.rollout(rollout).state is RolloutState.DONE


NEVER = (
    "host-2: projects bank and shop have no window in common with room for 5 m of work and a minute to spare"
)


def never_in_common() -> FleetSpec:
    return declared(open_at("14:00", 2), open_at("16:00", 2))


def test_a_rollout_that_no_window_fits_is_not_resumed(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    rollout = service.roll("host-2", "host-3")
    service.rollouts.pause(rollout.id, by="ops")
    service.apply(never_in_common())
    with refused(Conflict, match=f"cannot go on: {NEVER}: change the windows, or abandon it"):
        service.rollouts.resume(rollout.id, by="ops")
    assert service.rollout(rollout).state is RolloutState.PAUSED
    service.apply(declared(open_at("14:00", 4), open_at("16:00", 4)))
    service.rollouts.resume(rollout.id, by="ops")
    service.advance(days=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_windows_that_stop_overlapping_pause_a_rollout_once_all_others_are_done(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    rollout = service.roll("host-1", "host-2")
    service.apply(never_in_common())
    service.tick()
    shown = service.rollouts.rollout(rollout.id, expected=True)
    assert [wave.hosts for wave in shown.rollout.waves] == [("host-1",), ("host-2",)]
    assert [when.start_at - START for when in shown.expected] == [timedelta(hours=2)]
    assert f"{NEVER}: change the windows" in " ".join(waiting(service, rollout.id))
    service.advance(hours=5)
    paused = service.rollout(rollout)
    assert paused.state is RolloutState.PAUSED
    assert unmarked(paused.why).startswith(NEVER)
    assert started_at(service) == [START + timedelta(hours=2)]


def test_hosts_without_a_common_window_wait_for_the_deadline(service: Service) -> None:
    service.apply(never_in_common())
    rollout = service.roll("host-2", terms=RolloutTerms(deadline=START + timedelta(days=2)))
    assert waiting(service, rollout.id) == [f"{NEVER}: it waits for the deadline, 2026-01-07T12:00:00Z"]
    service.advance(days=3)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_the_reason_names_the_window_that_opens_last(service: Service) -> None:
    service.apply(declared(open_at("14:00", 4), open_at("16:00", 4)))
    rollout = service.roll("host-2")
    both = ["host-2: outside the window of project bank, which opens 2026-01-05 16:00 (UTC)"]
    assert waiting(service, rollout.id) == both
    service.advance(hours=3)
    service.look_at(rollout)
    assert waiting(service, rollout.id) == both


def test_the_reason_names_the_window_that_projects_share_if_each_has_others_before(service: Service) -> None:
    thursday = Window(days=frozenset({3}), start=time(2), length=timedelta(hours=2))
    shop = replace(open_at("14:00", 2), windows=(*open_at("14:00", 2).windows, thursday))
    bank = replace(
        open_at("16:00", 2), windows=(*open_at("16:00", 2).windows, replace(thursday, start=time(1)))
    )
    service.apply(declared(shop, replace(bank, zone=UTC)))
    rollout = service.roll("host-2")
    shared = "the windows that projects bank and shop have in common, which open 2026-01-08 02:00 (UTC)"
    for _ in range(2):
        assert waiting(service, rollout.id) == [f"host-2: outside {shared}"]
        service.advance(days=2)
    service.advance(days=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_no_reason_names_a_past_window_during_a_wave(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    service.driver.slow = {"till"}
    rollout = service.roll("host-3", "host-1", terms=RolloutTerms(health=timedelta(days=2)))
    assert f"host-1: {OUTSIDE}" in waiting(service, rollout.id)
    service.advance(hours=3)
    assert waiting(service, rollout.id) == ["host-1: wave 2 waits for wave 1"]


def test_a_machine_removed_with_its_group_blocks_no_order(service: Service) -> None:
    service.apply(declared(open_at("14:00", 2)))
    service.put("alone", host=HostName("host-1"), project=ProjectName("shop"))
    service.poll("alone")
    placed = maintain(service, "host-1")
    service.advance(hours=1, minutes=50)
    assert "alone" in [each.name for each in service.reload(placed).steps]
    service.delete("alone")
    service.work_on(placed.order.id)
    assert StepState.MOOT in {each.state for each in service.reload(placed).steps}
