"""Recommendations to rebalance: an event without work, which no rule counts."""

from datetime import timedelta

import pytest

from forewarn.core.basic_types import Action, EventStatus, Kind, MachineName, OrderState, Priority
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Hold
from forewarn.core.model.event import Event
from forewarn.core.model.group import GroupPolicy
from forewarn.core.orders import interventions, lifecycle
from tests.unit.slices import MINUTE, NOON, Fleet, machine

HINT = Action.RECOMMEND_REBALANCE


def spot(name: str, host: str = "host-1", *, domain: int = 0) -> Fleet:
    return Fleet(machine(name, host, domain=domain, priority=Priority.SPOT))


def pair(**more: object) -> Fleet:
    """Create two machines of a group, in two update domains on two hosts."""
    return Fleet(
        machine("web-0", priority=Priority.SPOT),
        machine("web-1", "host-2", domain=1, priority=Priority.SPOT),
        **more,  # type: ignore[arg-type]
    )


def only(fleet: Fleet) -> Event:
    (event,) = fleet.events()
    return event


def test_a_recommendation_is_scheduled_for_half_an_hour_without_a_step() -> None:
    fleet = spot("web-0")
    order = fleet.order("web-0", HINT)
    event = only(fleet)
    assert (event.type, event.status) == ("SpotRebalanceRecommendation", EventStatus.SCHEDULED)
    assert event.not_before == NOON + 30 * MINUTE
    assert (order.state, order.steps) == (OrderState.ANNOUNCED, ())
    assert fleet.waits(order.id) == [f"{event.id}: only a recommendation; it ends at 2026-01-05T12:30:00Z"]


def test_a_recommendation_ends_after_half_an_hour() -> None:
    fleet = spot("web-0")
    order = fleet.order("web-0", HINT)
    fleet.pass_(30 * MINUTE - timedelta(seconds=1))
    assert only(fleet).status is EventStatus.SCHEDULED
    fleet.pass_(timedelta(seconds=1))
    assert fleet.events() == ()
    assert fleet.draft.orders[order.id].state is OrderState.DONE
    assert fleet.history(Kind.EVENT_FINISHED) == ["its time is over"]


def test_a_recommendation_can_be_cancelled() -> None:
    fleet = spot("web-0")
    order = fleet.order("web-0", HINT)
    interventions.cancel(fleet.draft, order.id, by="test")
    assert fleet.events() == ()


def test_a_preempt_replaces_a_recommendation() -> None:
    fleet = spot("web-0")
    fleet.order("web-0", HINT)
    fleet.turn(MINUTE)
    fleet.order("web-0", Action.EVICT)
    assert only(fleet).type == "Preempt"


def test_approving_a_recommendation_changes_nothing() -> None:
    fleet = spot("web-0")
    fleet.order("web-0", HINT)
    before = only(fleet)
    fleet.approve(before)
    assert only(fleet) == before
    assert fleet.history(Kind.EVENT_APPROVED) == []


def test_a_recommendation_cannot_be_deferred() -> None:
    fleet = spot("web-0")
    fleet.order("web-0", HINT)
    with pytest.raises(Conflict, match="is a recommendation: it cannot be deferred"):
        lifecycle.defer(fleet.draft, only(fleet), by=MachineName("web-0"), wanted=MINUTE, policy=fleet.policy)


def test_only_a_spot_machine_gets_a_recommendation() -> None:
    with pytest.raises(Conflict, match='"web-0" is regular: only spot machines are evicted'):
        Fleet(machine("web-0")).order("web-0", HINT)


def test_a_machine_has_one_recommendation_at_a_time_and_none_while_it_leaves() -> None:
    fleet = spot("web-0")
    first = fleet.order("web-0", HINT)
    with pytest.raises(Conflict, match=f"has order {first.id} \\(recommend-rebalance\\)"):
        fleet.order("web-0", HINT)
    fleet = spot("web-0")
    fleet.order("web-0", Action.EVICT)
    with pytest.raises(Conflict, match="evict"):
        fleet.order("web-0", HINT)


@pytest.mark.parametrize("first", [HINT, Action.RESTART])
def test_a_recommendation_conflicts_with_no_other_order(first: Action) -> None:
    fleet = spot("web-0")
    fleet.order("web-0", first)
    fleet.order("web-0", Action.RESTART if first is HINT else HINT)
    assert {event.type for event in fleet.events()} == {"Reboot", "SpotRebalanceRecommendation"}


def test_maintenance_does_not_wait_for_a_recommendation() -> None:
    fleet = pair()
    fleet.order("web-0", HINT)
    fleet.turn(MINUTE)
    assert fleet.maintain("host-2").state is OrderState.ANNOUNCED


def test_a_recommendation_does_not_wait_for_maintenance() -> None:
    fleet = pair()
    fleet.maintain("host-2")
    assert fleet.order("web-0", HINT).state is OrderState.ANNOUNCED


def test_a_machine_with_a_recommendation_counts_as_healthy() -> None:
    fleet = pair(policies={"web": GroupPolicy(budget=1)})
    fleet.order("web-0", HINT)
    fleet.turn(MINUTE)
    assert fleet.maintain("host-2").state is OrderState.ANNOUNCED


def test_a_hold_delays_a_recommendation() -> None:
    fleet = spot("web-0")
    fleet.draft.holds["H"] = Hold(id="H", reason="heat", by="test", at=NOON)  # type: ignore[index]
    order = fleet.order("web-0", HINT)
    assert order.state is OrderState.QUEUED
    assert order.waiting
    fleet.draft.holds.clear()
    assert fleet.advance(order.id).state is OrderState.ANNOUNCED
