"""Drafts: changed objects, incarnations (rule 6), and the orders and rollouts to look at."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    GroupName,
    HostName,
    Kind,
    MachineId,
    MachineState,
    Priority,
    ProjectName,
    Work,
)
from forewarn.core.draft import Draft
from forewarn.core.model.changes import UNSAVED
from forewarn.core.model.group import GroupPolicy
from forewarn.core.orders import departures, events, interventions, placement
from forewarn.core.webhook_rules import Webhook, WebhookId
from tests.unit.slices import MINUTE, NOON, Fleet, machine

WEB, DB = GroupName("web"), GroupName("db")


def incarnation(fleet: Fleet) -> int:
    return {group.name: group.incarnation for group in fleet.draft.changes().groups}.get(
        WEB, fleet.draft.groups[WEB].incarnation
    )


# Rule 6


def test_an_announced_event_increases_only_its_groups_incarnation_by_one() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", "host-2"))
    fleet.maintain()
    assert [(group.name, group.incarnation) for group in fleet.draft.changes().groups] == [("web", 2)]


def test_a_transaction_increases_an_incarnation_at_most_by_one() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2"))
    fleet.maintain("host-1")
    fleet.maintain("host-2")
    assert (incarnation(fleet), incarnation(fleet)) == (2, 2)


def test_an_event_that_comes_and_goes_in_one_transaction_does_not_count() -> None:
    fleet = Fleet(machine("web-0"))
    interventions.cancel(fleet.draft, fleet.maintain().id, by="test")
    assert incarnation(fleet) == 1


def test_an_approval_alone_does_not_count() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0"))
    fleet.maintain()
    fleet.turn()
    fleet.approve(fleet.events()[1])
    assert incarnation(fleet) == 2


def test_a_start_a_later_not_before_a_removed_name_and_an_end_count() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    fleet.maintain()
    fleet.turn()
    (event,) = fleet.events()
    fleet.draft.put_event(replace(event, not_before=event.not_before + MINUTE))
    assert incarnation(fleet) == 3
    fleet.turn()
    events.remove_machine(fleet.draft, fleet.events()[0], MachineId("web-1"), why="moved")
    assert incarnation(fleet) == 4
    fleet.turn()
    events.start(fleet.draft, fleet.events()[0], why="it is time")
    assert incarnation(fleet) == 5
    fleet.turn()
    events.end(fleet.draft, fleet.events()[0], Kind.EVENT_FINISHED, why="done")
    assert incarnation(fleet) == 6


# Queries


def test_listed_update_domains_include_the_drafts_own_events() -> None:
    fleet = Fleet(machine("web-0", domain=2), machine("web-1", "host-2", domain=1))
    assert fleet.draft.listed_domains(WEB) == ()
    order = fleet.maintain()
    fleet.order("web-1")
    assert fleet.draft.listed_domains(WEB) == (1, 2)
    interventions.cancel(fleet.draft, order.id, by="test")
    assert fleet.draft.listed_domains(WEB) == (1,)


def test_a_changed_event_is_counted_once() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain()
    events.start(fleet.draft, fleet.events()[0], why="it is time")
    events.end(fleet.draft, fleet.events()[0], Kind.EVENT_FINISHED, why="done")
    assert fleet.draft.listed_domains(WEB) == ()


def test_a_budget_counts_the_drafts_own_events() -> None:
    machines = (machine(f"web-{n}", f"host-{n + 1}") for n in range(3))
    fleet = Fleet(*machines, machine("db-0"), policies={"web": GroupPolicy(budget=1)})
    fleet.order("web-0")
    budgets = fleet.draft.budgets([WEB, DB])
    assert (list(budgets), list(budgets[WEB].announced.values())) == ([WEB], ["web-0"])


def test_record_numbers_continue_from_the_newest() -> None:
    fleet = Fleet(machine("web-0"))
    first = fleet.draft.base.number
    order = fleet.maintain()
    changes = fleet.draft.changes()
    assert [record.number for record in changes.records] == [UNSAVED + 1, UNSAVED + 2]
    saved = changes.numbered(after=first)
    written = saved.records
    assert [record.number for record in written] == [first + 1, first + 2]
    assert (saved.orders[0].number, saved.events[0].number) == (first + 1, first + 2)
    fleet.draft.take_saved(saved)
    assert (fleet.draft.orders[order.id], fleet.draft.events_of(order.id)) == (saved.orders[0], saved.events)
    assert fleet.draft.given(changes.records[1].number) == first + 2
    assert [(record.kind, record.host, record.machine) for record in written] == [
        (Kind.ORDER_PLACED, "host-1", None),
        (Kind.EVENT_SCHEDULED, None, "web-0"),
    ]


def test_the_store_assigns_no_number_before_the_draft_is_saved() -> None:
    fleet = Fleet(machine("web-0"))
    with pytest.raises(LookupError, match="when it saves the draft"):
        fleet.draft.given(fleet.draft.number)


def test_saved_objects_keep_their_numbers_and_new_ones_get_later_numbers() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", "host-2"))
    known = fleet.maintain("host-1")
    fleet.turn()
    new = fleet.maintain("host-2")
    fleet.draft.put_order(replace(fleet.draft.orders[known.id], why="looked at"))
    numbers = {order.id: order.number for order in fleet.draft.changes().orders}
    assert numbers[known.id] < numbers[new.id]
    saved = {order.id: order.number for order in fleet.draft.changes().numbered(after=9).orders}
    assert saved == {known.id: numbers[known.id], new.id: 10}


def test_a_draft_without_loaded_room_refuses_moves() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    apart = Draft(replace(fleet.draft.base, room=None), now=fleet.now, new_id=lambda: "X")
    with pytest.raises(LookupError, match="room for it was not loaded"):
        placement.choose(apart, fleet.machine("web-0"), excluded=())


def test_a_moving_machine_counts_for_its_target_host() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), machine("web-2", "host-3"), hosts=["host-2"])
    fleet.draft.put_machine(replace(fleet.machine("web-0"), bound_for=HostName("host-2")))
    fleet.draft.put_machine(replace(fleet.machine("web-2"), host=None))
    fleet.draft.put_machine(machine("web-3", "host-1"))
    del fleet.draft.machines[MachineId("web-1")]
    assert fleet.draft.changes().carried == {"host-1": -1, "host-2": 1, "host-3": -1}


def test_queries_by_host_and_order_include_the_drafts_changes() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), machine("db-0", "host-2"))
    order = fleet.maintain("host-2")
    assert [each.name for each in fleet.draft.machines_on(HostName("host-1"))] == ["web-0", "web-1"]
    fleet.draft.put_machine(replace(fleet.machine("web-0"), host=HostName("host-2")))
    del fleet.draft.machines[MachineId("web-1")]
    fleet.draft.put_machine(machine("web-2", "host-1"))
    assert [each.name for each in fleet.draft.machines_on(HostName("host-1"))] == ["web-2"]
    assert [each.name for each in fleet.draft.machines_on(HostName("host-2"))] == ["db-0", "web-0"]
    assert [event.order for event in fleet.draft.events_of(order.id)] == [order.id]
    other = fleet.order("web-2")
    assert [event.order for event in fleet.draft.events_of(other.id)] == [other.id]


# Woken orders and rollouts


def test_groups_that_lost_an_event_or_gained_a_healthy_machine_are_relieved() -> None:
    fleet = Fleet(
        machine("web-0"), machine("db-0", "host-2", state=MachineState.STOPPED), machine("x-0", "host-3")
    )
    order = fleet.maintain()
    fleet.turn()
    interventions.cancel(fleet.draft, order.id, by="test")
    fleet.draft.put_machine(replace(fleet.machine("db-0"), state=MachineState.RUNNING))
    fleet.draft.put_machine(replace(fleet.machine("x-0"), state=MachineState.STOPPED))
    assert fleet.draft.changes().relieved_groups == {WEB, DB}


def test_a_group_is_relieved_when_a_machine_leaves_a_listed_event() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), policies={"web": GroupPolicy(freezes_at_once=2)})
    fleet.maintain(work=Work.FREEZE)
    fleet.turn()
    departures.remove_from_fleet(fleet.draft, fleet.machine("web-0"), why="removed")
    assert [len(event.resources) for event in fleet.events()] == [1]
    assert fleet.draft.changes().relieved_groups == {WEB}


def test_a_group_with_a_new_policy_is_relieved() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.draft.put_group(replace(fleet.draft.groups[WEB], policy=GroupPolicy(budget=1)))
    assert fleet.draft.changes().relieved_groups == {WEB}


def test_a_group_that_gains_a_healthy_machine_is_relieved() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0"))
    fleet.draft.put_machine(replace(fleet.machine("db-0"), group=WEB))
    assert fleet.draft.changes().relieved_groups == {WEB}


@pytest.mark.parametrize("budget", [0, 1])
def test_budgets_tighten_when_their_group_loses_a_machine(budget: int) -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), policies={"web": GroupPolicy(budget=budget)})
    assert not fleet.draft.changes().budgets_tightened
    del fleet.draft.machines[fleet.machine("web-0").id]
    assert fleet.draft.changes().budgets_tightened == bool(budget)


def test_budgets_tighten_when_a_group_needs_more() -> None:
    fleet = Fleet(machine("web-0"), policies={"web": GroupPolicy(budget=1)})
    for budget, tighter in ((0, False), (2, True)):
        fleet.draft.put_group(replace(fleet.draft.groups[WEB], policy=GroupPolicy(budget=budget)))
        assert fleet.draft.changes().budgets_tightened == tighter


def test_hosts_that_gained_a_machine_are_looked_at() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    fleet.draft.put_machine(replace(fleet.machine("web-0"), host=HostName("host-2")))
    fleet.draft.put_machine(machine("web-1", "host-3"))
    assert fleet.draft.changes().hosts_to_recheck == {"host-2", "host-3"}


def test_every_changed_group_and_host_is_listed_for_rollouts() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", "host-2"), hosts=["host-3"])
    fleet.maintain("host-1")
    assert fleet.draft.changes().changed_groups_and_hosts == {"host-1", "web"}
    fleet.turn()
    fleet.draft.put_machine(replace(fleet.machine("db-0"), host=HostName("host-3")))
    assert fleet.draft.changes().changed_groups_and_hosts == {"host-2", "host-3", "db"}
    fleet.turn()
    del fleet.draft.hosts[HostName("host-2")]
    assert fleet.draft.changes().changed_groups_and_hosts == {"host-2"}


def test_unchanged_objects_are_not_saved() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.draft.put_machine(fleet.machine("web-0"))
    changes = fleet.draft.changes()
    assert (changes.machines, changes.changed_groups_and_hosts, changes.records) == ((), frozenset(), ())


def test_deleted_objects_are_removed() -> None:
    fleet = Fleet(machine("web-0"))
    del fleet.draft.machines[MachineId("web-0")]
    assert fleet.draft.changes().removed_machines == ("web-0",)


def test_a_user_order_names_its_machine_and_project_in_its_record() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.order("web-0", Action.FREEZE)
    placed = fleet.draft.changes().records[0]
    assert (placed.project, placed.machine, placed.order) == ("default", "web-0", order.id)


def test_a_record_has_the_names_of_its_subject() -> None:
    fleet = Fleet(machine("web-0"))
    webhook = Webhook(
        id=WebhookId("W"),
        number=1,
        url="https://example.com",
        project=ProjectName("theirs"),
        owner=DEFAULT_PROJECT,
        kinds=frozenset(),
        secret="s",
        by="test",
        created_at=NOON,
        delivered=1,
    )
    draft = fleet.draft
    things = (
        draft.groups[WEB],
        draft.hosts[HostName("host-1")],
        draft.projects[DEFAULT_PROJECT],
        webhook,
        None,
    )
    for thing in things:
        draft.record(Kind.HOST_CHANGED, thing)
    named = [(record.project, record.group, record.host) for record in draft.changes().records]
    assert named == [
        ("default", "web", None),
        (None, None, "host-1"),
        ("default", None, None),
        ("default", None, None),
        (None, None, None),
    ]


def test_recommendations_are_not_counted() -> None:
    fleet = Fleet(machine("web-0", priority=Priority.SPOT))
    fleet.order("web-0", Action.RECOMMEND_REBALANCE)
    assert (len(fleet.events()), fleet.draft.listed_domains(WEB)) == (1, ())


def test_a_change_for_every_order_wakes_all_orders() -> None:
    fleet = Fleet(machine("web-0"))
    assert fleet.draft.changes().empty
    fleet.draft.wake_all()
    changes = fleet.draft.changes()
    assert (changes.wake_all, changes.empty) == (True, False)


def test_a_machine_without_a_host_is_on_none() -> None:
    fleet = Fleet(replace(machine("web-0"), host=None), machine("web-1"))
    assert [each.name for each in fleet.draft.machines_on(HostName("host-1"))] == ["web-1"]


def test_waking_an_order_that_is_due_changes_nothing() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.draft.wake([order])
    woken = fleet.draft.orders[order.id]
    fleet.draft.wake([woken])
    assert woken.due_at == fleet.now
    assert fleet.draft.orders[order.id] is woken


def test_a_machine_without_a_host_remembers_its_last_one() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    off = fleet.draft.put_machine(replace(fleet.machine("web-0"), host=None))
    assert off.last_host == "host-1"
    assert fleet.draft.put_machine(replace(off, update_domain=1)).last_host == "host-1"
    assert fleet.draft.put_machine(replace(off, host=HostName("host-2"))).last_host is None


@pytest.mark.parametrize(("kind", "found"), [(Kind.MACHINE_CHANGED, True), (Kind.STEP_DONE, False)])
def test_a_machine_stopped_outside_forewarn_is_found_off(kind: Kind, found: bool) -> None:
    fleet = Fleet(machine("web-0"))
    stopped = replace(fleet.machine("web-0"), state=MachineState.STOPPED)
    fleet.draft.record(kind, fleet.draft.put_machine(stopped))
    assert fleet.draft.changes().machine_stopped_outside == found
    fleet.turn()
    fleet.draft.record(kind, fleet.draft.put_machine(replace(stopped, tags={"a": "b"})))
    assert not fleet.draft.changes().machine_stopped_outside
