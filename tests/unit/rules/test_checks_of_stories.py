"""Whole orders break no rule, from announcement to end; nor do recorded exceptions."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.basic_types import Action, Kind, MachineId, OrderId, StepState, Work
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import Order
from tests.rules import Change, violations
from tests.unit.rules.test_checks import NIGHT, change
from tests.unit.slices import HOUR, MINUTE, NOON, SECOND, Fleet, machine

# Notice, work, and the time that an event stays listed; then the same for a second stage.
SPANS = (15 * MINUTE, MINUTE, 90 * SECOND, 15 * MINUTE, MINUTE, 90 * SECOND, HOUR)


def two_domains() -> Fleet:
    """Return a fleet with a host that carries two update domains of web, and db, and with an empty host."""
    return Fleet(machine("web-0"), machine("web-1", domain=1), machine("db-0"), hosts=["host-2"])


def in_stages() -> Fleet:
    fleet = two_domains()
    fleet.maintain()
    return fleet


def together() -> Fleet:
    fleet = two_domains()
    fleet.maintain(together="the rack must go")
    return fleet


def in_an_emergency() -> Fleet:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1), calendar=NIGHT)
    fleet.maintain(emergency="smoke", notice=MINUTE)
    return fleet


def past_a_deadline() -> Fleet:
    fleet = Fleet(machine("web-0"), calendar=NIGHT)
    fleet.maintain(deadline=NOON + MINUTE)
    return fleet


def within_a_budget() -> Fleet:
    policies = {"web": GroupPolicy(budget=1), "db": GroupPolicy(budget=1)}
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2"), machine("db-0", "host-3"), policies=policies)
    fleet.maintain()
    fleet.turn()
    fleet.order("web-1")  # users may do to themselves what they like
    fleet.maintain("host-3", emergency="smoke", notice=MINUTE)
    return fleet


def moving() -> Fleet:
    fleet = two_domains()
    fleet.maintain(work=Work.REDEPLOY)
    return fleet


def leaving() -> Fleet:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    fleet.maintain()
    fleet.turn()
    fleet.order("web-1", Action.TERMINATE)
    return fleet


def by_users() -> Fleet:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1), calendar=NIGHT)
    fleet.order("web-0")
    fleet.turn()
    fleet.order("web-1", Action.FREEZE)
    return fleet


STORIES = (
    in_stages,
    together,
    in_an_emergency,
    past_a_deadline,
    within_a_budget,
    moving,
    leaving,
    by_users,
)


def told(fleet: Fleet) -> list[Change]:
    """Run all orders to their end; each step of the clock is a change."""
    found: list[Change] = []
    heard: set[tuple[OrderId, MachineId]] = set()
    for span in SPANS:
        before, now = fleet.draft.base, fleet.now
        for order in list(fleet.draft.orders):
            fleet.advance(order)
        fleet.turn(span)
        after = fleet.draft.base
        found.append(replace(change(before, after, fleet), now=now, announced=frozenset(heard)))
        named = ((event.order, each.machine) for event in after.events.values() for each in event.resources)
        heard.update(named)
        for order in [each.id for each in after.orders.values() if _runs(each)]:
            fleet.finish(order)
    return found


def _runs(order: Order) -> bool:
    return any(step.state is StepState.RUNNING for step in order.steps)


@pytest.mark.parametrize("story", STORIES)
def test_whole_orders_break_no_rule(story: Callable[[], Fleet]) -> None:
    fleet = story()
    changes = told(fleet)
    assert [what for each in changes for what in violations(each)] == []
    assert fleet.history(Kind.STEP_DONE)
    assert fleet.draft.orders == {}


@pytest.mark.parametrize(
    ("story", "rule"),
    [
        (in_an_emergency, "notice_is_kept"),
        (together, "update_domains_are_not_armed_together"),
    ],
)
def test_a_broken_promise_without_a_record_is_found(story: Callable[[], Fleet], rule: str) -> None:
    first, *_ = told(story())
    kept = [record for record in first.records if record.kind != Kind.PROMISE_BROKEN]
    assert {each.partition(":")[0] for each in violations(replace(first, records=kept))} == {rule}


def test_windows_apply_until_the_deadline() -> None:
    started = next(each for each in told(past_a_deadline()) if any(map(_runs, each.after.orders.values())))
    for deadline, fine in ((started.now, True), (started.now + timedelta(microseconds=1), False)):
        orders = {
            id_: replace(order, terms=replace(order.terms, deadline=deadline))
            for id_, order in started.after.orders.items()
        }
        late = replace(started, after=replace(started.after, orders=orders))
        assert (violations(late) == []) is fine
