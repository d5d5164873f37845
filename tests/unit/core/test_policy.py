"""The policy: minimum notices, invalid times, and work that is never announced."""

from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.basic_types import Action, Kind, Work
from forewarn.core.errors import Invalid
from forewarn.core.model.machine import Machine
from forewarn.core.policy import Policy, event_type, work_of
from tests.unit.slices import Fleet, machine


@pytest.mark.parametrize("name", ["stale_after", "save_activity_every", "external_silence"])
def test_some_times_of_the_policy_must_be_positive(name: str) -> None:
    with pytest.raises(Invalid, match=f"{name.replace('_', '-')}: expected a time greater than zero"):
        Policy(**{name: timedelta()})
    assert getattr(Policy(**{name: timedelta(seconds=1)}), name) == timedelta(seconds=1)


def test_a_start_has_no_event_type() -> None:
    with pytest.raises(ValueError, match="a start is never announced"):
        event_type(Work.START)


def test_an_order_that_only_changes_its_host_does_nothing_to_machines() -> None:
    order = Fleet(machine("web-0")).maintain(action=Action.CORDON)
    with pytest.raises(ValueError, match="a cordon order does nothing to machines"):
        work_of(order)


def unheard(minutes: int, *machines: Machine, **more: Any) -> Fleet:
    """A fleet in which groups that never polled may get less notice."""
    return Fleet(*machines, policy=Policy(unheard_notice=timedelta(minutes=minutes)), **more)


def test_groups_that_never_polled_may_get_less_notice_of_platform_work() -> None:
    fleet = unheard(1, machine("web-0"), silent=["web"])
    order = fleet.maintain()
    (event,) = fleet.events(order.id)
    assert event.not_before - event.announced_at == timedelta(minutes=1)
    assert (event.armed_at, fleet.history(Kind.PROMISE_BROKEN)) == (fleet.now, [])


def test_one_group_that_has_polled_gives_all_groups_of_an_event_full_notice() -> None:
    fleet = unheard(1, machine("web-0"), machine("db-0"), silent=["web"])
    fleet.maintain()
    assert {event.not_before - fleet.now for event in fleet.events()} == {timedelta(minutes=15)}


def test_a_longer_notice_for_groups_that_never_polled_has_no_effect() -> None:
    fleet = unheard(60, machine("web-0"), silent=["web"])
    fleet.maintain()
    assert fleet.events()[0].not_before - fleet.now == timedelta(minutes=15)


def test_a_degraded_host_of_machines_that_never_polled_is_announced_at_once() -> None:
    fleet = unheard(30, machine("web-0"), silent=["web"])
    fleet.maintain(action=Action.DEGRADE)
    assert fleet.events()[0].not_before - fleet.now == timedelta(minutes=30)


def test_users_own_work_keeps_its_notice() -> None:
    fleet = unheard(1, machine("web-0"), silent=["web"])
    fleet.order("web-0", Action.TERMINATE)
    assert fleet.events()[0].not_before - fleet.now == timedelta(minutes=5)
