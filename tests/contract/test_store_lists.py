"""Lists of every store, page by page."""

import base64
import json
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest

from forewarn.core.basic_types import (
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderState,
    ProjectName,
    Work,
)
from forewarn.core.errors import Invalid
from forewarn.core.filters import EventFilter, MachineFilter, OrderFilter
from forewarn.core.model.host import HostLoad, HostResource
from forewarn.core.model.project import Project
from forewarn.core.scope import Scope
from forewarn.store.store import Store
from tests.contract.samples import (
    NOW,
    SECOND,
    event,
    group,
    host,
    machine,
    order,
    record,
    save,
    save_fleet,
    stage,
    step,
)
from tests.contract.test_store_rollouts import rollout


def pages(store: Store, name: str, *, limit: int, **more: Any) -> list[list[Any]]:
    """Read all pages of a list."""
    found, after = [], None
    while True:
        with store.read() as snapshot:
            shown, after = attrgetter(name)(snapshot)(after=after, limit=limit, **more)
        found.append(list(shown))
        if after is None:
            return found


def test_machines_are_listed_by_project_and_name_without_its_case(store: Store) -> None:
    other = machine("web-1", id="other", project=ProjectName("a"))
    save_fleet(store, [machine("web-2"), machine("Web-1"), machine("db-0"), other])
    assert pages(store, "fleet.machines", limit=3) == [
        [other, machine("db-0"), machine("Web-1")],
        [machine("web-2")],
    ]


def test_machines_are_found_by_name_and_prefix(store: Store) -> None:
    other = machine("web-1", id="other", project=ProjectName("a"))
    save_fleet(store, [machine("web-2"), machine("Web-1"), machine("web_1"), machine("we"), other])

    def names(**wanted: Any) -> list[str]:
        (listed,) = pages(store, "fleet.machines", limit=10, wanted=MachineFilter(**wanted))
        return [each.name for each in listed]

    assert names(names=frozenset({"WEB-1", "web-9"})) == ["web-1", "Web-1"]
    assert names(begins="WEB-") == ["web-1", "Web-1", "web-2"]
    assert names(begins="web_") == ["web_1"]
    assert names(begins="w", names=frozenset({"web-2"}), group=GroupName("web")) == ["web-2"]
    assert names(begins="web-1%") == []
    assert names(contains="B-") == ["web-1", "Web-1", "web-2"]
    assert names(contains="b_") == ["web_1"]
    assert names(contains="%") == []
    assert len(pages(store, "fleet.machines", limit=2, wanted=MachineFilter(begins="web-"))) == 2


def test_machines_are_found_by_a_part_of_their_address_and_of_their_vm_id(store: Store) -> None:
    far = machine("abc", id=MachineId("00000000-0000-4000-8000-0000feed0000"), address="10.0.0.17")
    save_fleet(store, [far, machine("feed-0"), machine("xyz", address="fd00::17")])

    def names(contains: str) -> list[str]:
        (listed,) = pages(store, "fleet.machines", limit=10, wanted=MachineFilter(contains=contains))
        return [each.name for each in listed]

    assert names("0.17") == ["abc"]
    assert names(":17") == ["xyz"]
    assert names("FEED") == ["abc", "feed-0"]
    assert names("fee") == ["feed-0"]  # a text this short occurs in many vm-ids


def test_hosts_are_listed_with_the_number_of_machines_and_free_resources(store: Store) -> None:
    large = host("large", resources={"memory": HostResource(amount=16, ratio=2)})
    there = machine("web-1", host=large.name, resources={"memory": 8, "cpus": 2})
    coming = machine("web-2", host=HostName("small"), bound_for=large.name, resources={"memory": 4})
    save_fleet(store, hosts=["small"])
    save(store, hosts=(large,), machines=(there, coming))
    with store.read() as snapshot:
        hosts, _ = snapshot.fleet.hosts(after=None, limit=10)
        loads = snapshot.rules.host_loads(hosts)
    assert loads == {
        "large": HostLoad(carried=1, free={"memory": 20}),
        "small": HostLoad(carried=1),
    }


def test_both_databases_order_names_equally(store: Store) -> None:
    names = ["a_b", "a-b", "ab", "a.c", "é", "z"]
    save_fleet(store, [machine(name) for name in names])
    (listed,) = pages(store, "fleet.machines", limit=10)
    assert [each.name for each in listed] == sorted(names)


def test_the_groups_of_standalone_machines_are_not_listed(store: Store) -> None:
    alone = group("alone", kind=GroupKind.STANDALONE)
    save(store, groups=(group("web"), alone, group("db")))
    assert pages(store, "fleet.groups", limit=1) == [[group("db")], [group("web")]]
    with store.read() as snapshot:
        assert snapshot.fleet.group(GroupName("alone")) == alone


def test_hosts_are_listed_by_name(store: Store) -> None:
    save_fleet(store, hosts=["host-2", "host-1", "host-3"])
    assert pages(store, "fleet.hosts", limit=2) == [[host("host-1"), host("host-2")], [host("host-3")]]


def test_projects_are_listed_by_name(store: Store) -> None:
    projects = [Project(name=ProjectName(name)) for name in ("a.b", "a-b", "b")]
    save(store, projects=tuple(projects))
    listed = pages(store, "fleet.page_of_projects", limit=2)
    assert [[each.name for each in page] for page in listed] == [["a-b", "a.b"], ["b"]]


def test_open_rollouts_are_listed_newest_first(store: Store) -> None:
    over = replace(rollout(2), ended_at=NOW)
    save(store, rollouts=(rollout(1), over, rollout(3), rollout(4)))
    listed = pages(store, "rollouts.page_of_open", limit=2)
    assert [[each.number for each in page] for page in listed] == [[4, 3], [1]]


def test_orders_are_listed_newest_first(store: Store) -> None:
    over = order(2, state=OrderState.DONE, ended_at=NOW)
    save(store, orders=(order(1), over, order(3)))
    assert pages(store, "work.orders", limit=2) == [[order(3), over], [order(1)]]
    assert pages(store, "work.orders", limit=2, wanted=OrderFilter(state=OrderState.DONE)) == [[over]]
    assert pages(store, "work.orders", limit=2, wanted=OrderFilter(state=OrderState.FAILED)) == [[]]


def test_listed_events_are_listed_by_creation(store: Store) -> None:
    save(store, events=(event(3), event(1), event(2, ended_at=NOW), event(4)))
    assert pages(store, "work.events", limit=2) == [[event(1), event(3)], [event(4)]]


def test_an_insertion_does_not_shift_pages(store: Store) -> None:
    save_fleet(store, [machine("web-1"), machine("web-3")])
    with store.read() as snapshot:
        first, after = snapshot.fleet.machines(after=None, limit=1)
    save(store, machines=(machine("web-0"), machine("web-2")))
    with store.read() as snapshot:
        second, _ = snapshot.fleet.machines(after=after, limit=2)
    assert [*first, *second] == [machine("web-1"), machine("web-2"), machine("web-3")]


def test_a_cursor_stays_valid_after_its_item_is_removed(store: Store) -> None:
    save_fleet(store, [machine("web-1"), machine("web-2")])
    with store.read() as snapshot:
        _, after = snapshot.fleet.machines(after=None, limit=1)
    save(store, removed_machines=(machine("web-1").id,))
    with store.read() as snapshot:
        assert snapshot.fleet.machines(after=after, limit=1) == ([machine("web-2")], None)


def test_a_full_last_page_has_no_next(store: Store) -> None:
    save_fleet(store, [machine("web-1"), machine("web-2")])
    with store.read() as snapshot:
        assert snapshot.fleet.machines(after=None, limit=2)[1] is None


def cursor(*place: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


MALFORMED = [
    *("", "!", "é", "x" * 5, cursor(), cursor(None), cursor({}, "a")),
    *(cursor(True, "a"), cursor(2**63, "a"), cursor(-1, "a")),
]


def test_a_malformed_cursor_is_refused(store: Store) -> None:
    with store.read() as snapshot:
        for name in ("fleet.machines", "fleet.groups", "fleet.hosts", "work.orders", "work.events"):
            for malformed in MALFORMED:
                with pytest.raises(Invalid, match="cursor"):
                    attrgetter(name)(snapshot)(after=malformed, limit=1)


def test_a_page_has_at_least_one_item(store: Store) -> None:
    with store.read() as snapshot, pytest.raises(Invalid, match="limit"):
        snapshot.fleet.hosts(after=None, limit=0)


def test_past_events_are_listed_newest_first_also_by_id_prefix(store: Store) -> None:
    over = event(2, ended_at=NOW)
    save(store, groups=(group("web"),), events=(event(1), over, event(3)))
    assert pages(store, "work.events", limit=2, wanted=EventFilter(past=True)) == [
        [event(3), over],
        [event(1)],
    ]
    assert pages(
        store, "work.events", limit=2, wanted=EventFilter(past=True, begins=over.id[:-1].lower())
    ) == [
        [event(3), over],
        [event(1)],
    ]
    assert pages(store, "work.events", limit=2, wanted=EventFilter(past=True, begins=over.id)) == [[over]]
    assert pages(store, "work.events", limit=2, wanted=EventFilter(begins=over.id)) == [[]]
    with store.read() as snapshot:
        assert snapshot.work.projects_of_events([event(1).id]) == {event(1).id: group("web").project}


def test_events_of_simulated_orders_differ_from_others_and_from_hints(store: Store) -> None:
    orders = (order(1), order(2, driver="external"), order(3, work=Work.RECOMMEND))
    events = [event(number, order=made.id) for number, made in enumerate(orders, 1)]
    save(store, groups=(group("web"),), orders=orders, events=(*events, event(4, order=order(1).id)))
    with store.read() as snapshot:
        assert snapshot.work.simulated_events([each.id for each in events]) == {event(1).id}
        assert snapshot.work.simulated_events([]) == set()


def ids_of(store: Store, name: str, wanted: Any) -> list[str]:
    return [each.id for page in pages(store, name, limit=2, wanted=wanted) for each in page]


def test_past_events_are_found_by_the_time_in_which_they_were_listed(store: Store) -> None:
    def minute(number: int) -> Any:
        return NOW + 60 * number * SECOND

    spans = {1: (0, 10), 2: (0, None), 3: (20, 30), 4: (25, None)}
    events = [
        event(number, announced_at=minute(begin), ended_at=None if end is None else minute(end))
        for number, (begin, end) in spans.items()
    ]
    save(store, groups=(group(),), events=tuple(events))

    def found(since: int | None, until: int | None, *, past: bool = True) -> list[int]:
        wanted = EventFilter(
            past=past,
            since=None if since is None else minute(since),
            until=None if until is None else minute(until),
        )
        return [spans_id[each] for each in ids_of(store, "work.events", wanted)]

    spans_id = {event(number).id: number for number in spans}
    for since in (None, 0, 9, 10, 11, 22, 40):
        for until in (None, 0, 1, 21, 26):
            overlapping = [
                number
                for number, (begin, end) in spans.items()
                if (until is None or begin < until) and (since is None or end is None or end >= since)
            ]
            assert found(since, until) == sorted(overlapping, reverse=True), (since, until)
            current = [number for number in overlapping if spans[number][1] is None]
            assert found(since, until, past=False) == current


def test_orders_and_events_are_found_by_machine_and_host(store: Store) -> None:
    web, other = machine("web-0"), machine("Other", host=host("host-2").name)
    save_fleet(store, [web, other], hosts=["host-1", "host-2"])
    over = {"state": OrderState.DONE, "ended_at": NOW}
    orders = {
        "told": order(1, host=host("host-2").name, **over),
        "touching": order(2, stages=(stage(step("web-0")),)),
        "placed": order(3, **over),
        "elsewhere": order(4, host=host("host-2").name),
        "gone": order(5, machine=other.id, machine_name=other.name, **over),
    }
    named = record(13, order=orders["placed"].id, machine=web.name)
    told = event(11, order=orders["told"].id, ended_at=NOW)
    touched = event(12, order=orders["touching"].id, resources=())
    save(store, orders=tuple(orders.values()), events=(told, touched), records=(named,))

    def found(name: str, wanted: Any) -> list[str]:
        by_id = {each.id: label for label, each in orders.items()} | {told.id: "told", touched.id: "touched"}
        return [by_id[each] for each in ids_of(store, name, wanted)]

    assert found("work.orders", OrderFilter(machine=MachineName("WEB-0"))) == ["placed", "touching", "told"]
    assert found("work.orders", OrderFilter(machine=MachineName("web-0"), only_open=True)) == ["touching"]
    assert found("work.orders", OrderFilter(host=host("host-1").name)) == ["touching"]
    assert found("work.orders", OrderFilter(host=host("host-2").name)) == ["elsewhere", "told"]
    assert found("work.events", EventFilter(past=True, machine=MachineName("WEB-0"))) == ["told"]
    assert found("work.events", EventFilter(machine=MachineName("web-0"))) == []
    assert found("work.events", EventFilter(past=True, host=host("host-2").name)) == ["told"]
    assert found("work.events", EventFilter(host=host("host-1").name)) == ["touched"]
    with store.scoped(Scope(caller=ProjectName("b"))).read() as snapshot:
        assert snapshot.work.orders(OrderFilter(machine=MachineName("web-0")), after=None, limit=9) == (
            [],
            None,
        )
        past = EventFilter(past=True, machine=MachineName("web-0"))
        assert snapshot.work.events(past, after=None, limit=9) == ([], None)
