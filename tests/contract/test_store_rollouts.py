"""Rollouts in every store: saved, listed, woken, and surveys of their hosts."""

from dataclasses import replace
from datetime import timedelta

from forewarn.core.basic_types import (
    GroupName,
    HostName,
    HostState,
    MachineName,
    MachineState,
    Mobility,
    OrderId,
    Work,
)
from forewarn.core.model.changes import Changes
from forewarn.core.model.constraints import Hold, Waiting
from forewarn.core.model.footprint import MovePace
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.host import HostResource
from forewarn.core.model.order import OrderTerms
from forewarn.core.model.rollout import Rollout, RolloutState, Wave, WaveState
from forewarn.store.store import Store
from tests.contract.samples import NOW, SECOND, event, group, host, machine, order, order_id
from tests.helpers.database.transactions import writing

ONE, TWO = HostName("host-1"), HostName("host-2")


def rollout(number: int = 1, **more: object) -> Rollout:
    given = {
        "id": f"CCCCCCCC-0000-4000-8000-{number:012X}",
        "number": number,
        "work": Work.FREEZE,
        "hosts": (ONE, TWO),
        "by": "ops",
        "created_at": NOW,
    }
    return Rollout(**{**given, **more})  # type: ignore[arg-type]


def put(store: Store, **more: object) -> None:
    with writing(store) as tx:
        tx.changes.save(Changes(now=NOW, **more))  # type: ignore[arg-type]


def read(store: Store, wanted: Rollout) -> Rollout | None:
    with store.read() as snapshot:
        return snapshot.rollouts.find(wanted.id.lower())


def test_a_rollout_is_read_back_as_it_was_saved(store: Store) -> None:
    times = {"announced_at": NOW, "started_at": NOW + SECOND, "ended_at": NOW + 2 * SECOND}
    begun = Wave(hosts=(ONE,), state=WaveState.DONE, orders=(order_id(1),), **times)
    whole = rollout(
        hosts_at_once=2,
        gap=timedelta(minutes=5),
        state=RolloutState.PAUSED,
        aborting=True,
        waves=(begun, Wave(hosts=(TWO,))),
        abandoned=(ONE,),
        alike=((ONE, TWO),),
        waiting=(Waiting(what="web", reason="waits", group=GroupName("web"), stuck=True, until=NOW),),
        blocked=True,
        reason="kernel",
        why="by ops",
        due_at=NOW,
    )
    put(store, rollouts=(whole,))
    assert read(store, whole) == whole
    over = replace(whole, ended_at=NOW, due_at=None)
    put(store, rollouts=(over,))
    assert read(store, whole) == over


def test_rollouts_are_listed_newest_first(store: Store) -> None:
    put(store, rollouts=tuple(rollout(number) for number in (1, 2, 3)))
    with store.read() as snapshot:
        page, more = snapshot.rollouts.page(after=None, limit=2)
        rest, end = snapshot.rollouts.page(after=more, limit=2)
    assert [each.number for each in (*page, *rest)] == [3, 2, 1]
    assert end is None


def test_a_rollout_is_due_at_its_time(store: Store) -> None:
    later = rollout(due_at=NOW + SECOND)
    put(store, rollouts=(later, rollout(2)))
    with store.read() as snapshot:
        assert snapshot.rollouts.due(NOW, limit=10) == []
        assert snapshot.rollouts.due(NOW + SECOND, limit=10) == [later.id]
        assert snapshot.due.moments(after=NOW).rollout == NOW + SECOND


def test_a_saved_order_makes_its_rollout_due(store: Store) -> None:
    mine, other = rollout(), rollout(2)
    put(store, rollouts=(mine, other))
    put(store, orders=(order(1, terms=OrderTerms(rollout=mine.id)),))
    with store.read() as snapshot:
        assert snapshot.rollouts.due(NOW, limit=10) == [mine.id]
        known = snapshot.rollouts.orders_by_id([order_id(1), OrderId("no such order")])
    assert known[order_id(1)].terms.rollout == mine.id


def test_a_change_of_its_obstacle_makes_a_blocked_rollout_due(store: Store) -> None:
    for_host = (Waiting(what="host-1", reason="is failed"),)
    for_group = (Waiting(what="db", reason="needs 2 healthy", group=GroupName("db")),)
    blocked = rollout(blocked=True, waiting=for_host), rollout(2, blocked=True, waiting=for_group)
    put(store, rollouts=(*blocked, rollout(3, waiting=for_host), rollout(4, blocked=True, ended_at=NOW)))
    for changed, due in ({"host-2"}, []), ({"db"}, [2]), ({"host-1"}, [2, 1]):
        put(store, changed_groups_and_hosts=frozenset(changed))
        with store.read() as snapshot:
            assert sorted(snapshot.rollouts.due(NOW, limit=10)) == sorted(rollout(n).id for n in due)


def test_a_global_change_makes_every_blocked_rollout_due(store: Store) -> None:
    put(store, rollouts=(rollout(blocked=True), rollout(2), rollout(3, blocked=True, ended_at=NOW)))
    put(store, wake_all=True)
    with store.read() as snapshot:
        assert snapshot.rollouts.due(NOW, limit=10) == [rollout().id]


def test_a_survey_counts_the_machines_that_work_on_hosts_disturbs(store: Store) -> None:
    web = GroupName("web")
    put(
        store,
        hosts=(host("host-1"), host("host-2")),
        groups=(
            group(policy=GroupPolicy(budget=2, notice=timedelta(hours=1))),
            group("elsewhere", policy=GroupPolicy(budget=1, notice=timedelta(hours=2))),
        ),
        machines=(
            machine("elsewhere-0", host=TWO, group=GroupName("elsewhere")),
            machine("a", host=ONE, update_domain=0),
            machine("b", host=ONE, update_domain=0),
            machine("c", host=ONE, update_domain=1, state=MachineState.FROZEN),
            machine("d", host=TWO, update_domain=2),
            machine("e", host=None, state=MachineState.STOPPED),
        ),
        orders=(order(1, host=ONE, machine=None, machine_name=None, project=None),),
        events=(event(1, update_domain=1),),
        holds=(Hold(id="H", reason="audit", by="ops", at=NOW),),
    )
    with store.read() as snapshot:
        survey = snapshot.rollouts.survey([ONE, HostName("nowhere")])
        silent = snapshot.rollouts.machines_never_seen([ONE])
    assert set(survey.hosts) == {ONE}
    assert survey.footprints[ONE].counts == {web: {0: 2, 1: 1}}
    assert survey.footprints[ONE].stages == 2
    assert survey.orders[ONE].id == order_id(1)
    assert list(survey.armed[web]) == [1]
    assert survey.notices == {web: timedelta(hours=1)}
    assert survey.sizes == {web: 5}
    assert set(survey.budgets) == set(survey.policies) == {web}
    assert [hold.id for hold in survey.holds] == ["H"]
    named = {resource.name for resource in event(1).resources}
    budget = survey.budgets[web]
    assert (budget.needs, budget.members) == (2, 5)
    assert set(budget.down.values()) == {MachineName("c"), MachineName("e")}
    assert set(budget.announced.values()) == named
    assert sorted(silent.values()) == ["a", "b", "c"]


def test_a_survey_has_the_machines_of_hosts_and_the_room_on_others(
    store: Store,
) -> None:
    free = host("host-3", labels={"zone": "b"}, resources={"memory": HostResource(amount=10, ratio=2)})
    closed = host("host-4", state=HostState.CORDONED)
    leaving = machine("web-0", host=ONE, mobility=Mobility.NONE, resources={"memory": 4})
    coming = machine("web-1", host=TWO, bound_for=free.name, resources={"memory": 5})
    put(
        store,
        groups=(group("web"),),
        hosts=(host("host-1"), host("host-2"), free, closed),
        machines=(leaving, coming),
        orders=(order(1, machine=coming.id),),
    )
    with store.read() as snapshot:
        around = snapshot.rollouts.surroundings([ONE])
        (other,) = snapshot.rollouts.surroundings([TWO]).machines
    (known,) = around.machines
    assert (known.name, known.mobility, known.resources) == (leaving.name, Mobility.NONE, {"memory": 4})
    assert set(around.rooms) == {ONE, TWO, free.name}
    assert around.rooms[free.name].free == {"memory": 15}
    assert around.rooms[free.name].labels == {"zone": "b"}
    assert other.ordered.startswith(f"has order {order_id(1)} (")


def test_other_hosts_are_found_by_their_groups(store: Store) -> None:
    closed = {
        "cordoned": {"state": HostState.CORDONED},
        "worked-on": {"state": HostState.CORDONED, "cordoned_for": order_id(1)},
        "metal": {"bare_metal": True},
    }
    put(
        store,
        groups=(group("web"), group("db")),
        hosts=(host("host-1"), host("host-2"), *(host(name, **more) for name, more in closed.items())),
        machines=(
            machine("a", host=ONE),
            machine("b", host=TWO, update_domain=1),
            machine("c", host=TWO, update_domain=1),
            machine("d", host=TWO, group=GroupName("db")),
            machine("e", host=TWO, update_domain=2, state=MachineState.STOPPED),
            *(machine(f"on-{name}", host=HostName(name)) for name in closed),
        ),
    )
    web = [GroupName("web")]
    with store.read() as snapshot:
        others = snapshot.rollouts.other_hosts_with(web, besides=[ONE])
        assert snapshot.rollouts.other_hosts_with(web, besides=[ONE, TWO, HostName("worked-on")]) == {}
        taking = {name for name, each in snapshot.rules.everything().hosts.items() if each.takes_machines}
    assert {name: each.counts for name, each in others.items()} == {
        TWO: {GroupName("web"): {1: 2}},
        HostName("worked-on"): {GroupName("web"): {0: 1}},
    }
    assert taking == {ONE, *others}


def test_the_durations_of_moves_are_summed_up(store: Store) -> None:
    put(store, hosts=(host("host-1"),), moves=MovePace(expected=60, taken=90))
    put(store, moves=MovePace(expected=40, taken=10))
    with store.read() as snapshot:
        known = snapshot.rollouts.survey([ONE]).pace
        assert snapshot.rules.everything().pace == snapshot.rules.around(hosts=[ONE]).pace == known
    assert known == MovePace(expected=100, taken=100)
