"""Counts of the fleet in every store."""

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forewarn.core.basic_types import (
    STANDALONE,
    EventStatus,
    GroupKind,
    GroupName,
    HostName,
    HostState,
    MachineState,
    OrderState,
    ProjectName,
)
from forewarn.core.model.constraints import Hold
from forewarn.core.model.event import Event, Resource
from forewarn.core.model.fleet_counts import DomainSummary, FleetSummary, GroupSummary
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.scope import Scope
from forewarn.store.store import Store, open_store
from tests.contract.samples import NOW, event, group, host, machine, order, save
from tests.contract.test_store_rollouts import rollout

A, B = ProjectName("a"), ProjectName("b")
RUNNING, FROZEN = MachineState.RUNNING, MachineState.FROZEN


def summary(store: Store, project: ProjectName | None = None) -> FleetSummary:
    with store.scoped(Scope(caller=None, asked=project)).read() as snapshot:
        return snapshot.fleet.summary()


def naming(number: int, *machines: Machine, **more: object) -> Event:
    named = tuple(Resource(machine=each.id, name=each.name) for each in machines)
    first = machines[0]
    return event(number, group=first.group, update_domain=first.update_domain, resources=named, **more)


def alone(name: str, project: ProjectName) -> tuple[Group, Machine]:
    own = group(f"{STANDALONE}{name}", kind=GroupKind.STANDALONE, project=project, update_domains=1)
    return own, machine(name, group=own.name, project=project)


def test_a_fleet_is_counted_by_group_update_domain_and_state(store: Store) -> None:
    own, spot = alone("spot", B)
    web = [machine(f"web-{n}", project=A, update_domain=n % 2) for n in range(4)]
    web[3] = replace(web[3], state=FROZEN)
    save(
        store,
        hosts=(host("host-1"), host("host-2", state=HostState.CORDONED)),
        groups=(group(project=A), own),
        machines=(*web, spot),
        orders=(order(1, project=A), order(2, project=A, state=OrderState.DONE, ended_at=NOW)),
        events=(
            naming(1, web[0], web[2]),
            naming(2, web[0]),
            naming(3, web[1], status=EventStatus.STARTED, started_at=NOW),
            naming(4, web[1], web[3], ended_at=NOW),
            naming(5, spot),
        ),
        rollouts=(rollout(1), replace(rollout(2), ended_at=NOW)),
        holds=(Hold(id="H", reason="holidays", by="olga", at=NOW),),
    )
    found = summary(store)
    assert (found.machines, found.states["running"], found.states["frozen"]) == (5, 4, 1)
    assert (found.hosts or {})["ok"] == (found.hosts or {})["cordoned"] == 1
    assert found.events == {"Scheduled": 3, "Started": 1}
    assert found.orders == {"queued": 1, "announced": 0, "started": 0, "failed": 0}
    assert (found.rollouts or {})["running"] == 1
    assert found.holds == 1
    of_web = GroupSummary(
        name=GroupName("web"),
        project=A,
        kind=GroupKind.AVAILABILITY_SET,
        machines=4,
        update_domains=(
            counted(0, {"running": 2}, scheduled=2),
            counted(1, {"frozen": 1, "running": 1}, started=1),
            counted(2, {}),
        ),
    )
    of_b = GroupSummary(
        name=None,
        project=B,
        kind=GroupKind.STANDALONE,
        machines=1,
        update_domains=(counted(0, {"running": 1}, scheduled=1),),
    )
    assert found.groups == (of_web, of_b)


def counted(domain: int, states: dict[str, int], *, scheduled: int = 0, started: int = 0) -> DomainSummary:
    return DomainSummary(
        update_domain=domain,
        machines=sum(states.values()),
        states=states,
        scheduled=scheduled,
        started=started,
    )


def test_a_project_counts_its_own_machines_and_their_hosts(store: Store) -> None:
    mine, theirs = machine("web-0", project=A), machine("db-0", project=B, group=GroupName("db"))
    save(
        store,
        hosts=(host("host-1"), host("host-2", state=HostState.DEGRADED)),
        groups=(group(project=A), group("db", project=B), *(alone("spot", B)[:1])),
        machines=(mine, replace(theirs, host=HostName("host-2")), alone("spot", B)[1]),
        orders=(order(1, project=A), order(2, project=B)),
        events=(naming(1, mine), naming(2, theirs)),
        holds=(Hold(id="H", reason="holidays", by="olga", at=NOW),),
    )
    found = summary(store, A)
    assert (found.machines, found.events["Scheduled"], found.orders["queued"]) == (1, 1, 1)
    assert [each.name for each in found.groups] == ["web"]
    assert (found.hosts or {})["ok"] == 1
    assert (found.hosts or {})["degraded"] == 0
    assert (found.rollouts, found.holds) == (None, None)
    assert [each.name for each in summary(store, B).groups] == ["db", None]
    assert [each.name for each in summary(store, ProjectName("c")).groups] == []


machines = st.lists(
    st.tuples(st.sampled_from(["web", "db", "alone"]), st.integers(0, 2), st.sampled_from([*MachineState])),
    max_size=12,
)


@given(machines)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_machine_is_counted_once(drawn: list[tuple[str, int, MachineState]]) -> None:
    store = open_store("sqlite://", new_id=lambda: "X")
    own: list[Group] = []
    made: list[Machine] = []
    for number, (of, domain, state) in enumerate(drawn):
        if of == "alone":
            single, one = alone(f"m-{number}", A)
            own.append(single)
            made.append(replace(one, state=state))
        else:
            more = {"group": GroupName(of), "update_domain": domain, "state": state}
            made.append(machine(f"m-{number}", project=A, **more))
    save(store, groups=(group(project=A), group("db", project=A), *own), machines=tuple(made))
    found = summary(store)
    store.close()
    assert found.machines == sum(each.machines for each in found.groups) == len(made)
    states: Counter[str] = Counter()
    for each in found.groups:
        assert each.machines == sum(domain.machines for domain in each.update_domains)
        for domain in each.update_domains:
            states.update(domain.states)
    assert states == Counter(each.state.value for each in made)
