"""Applying a part of a declared fleet: errors, descriptions of changes, and repetition."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    EXTERNAL,
    HOOK,
    SIMULATED,
    GroupKind,
    GroupName,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineId,
    MachineName,
    MachineState,
    Mobility,
    ProjectName,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.fleet import applying, machines
from forewarn.core.fleet.fleet_changes import DeclaredMachine, FleetChange
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, HostStep, Order
from forewarn.core.model.project import Calendar, Project
from forewarn.core.orders import reports
from tests.unit.slices import HOUR, MINUTE, NOON, Fleet, machine

HOST, WEB = HostName("host-1"), GroupName("web")


def group(**more: Any) -> GroupSpec:
    defaults: dict[str, Any] = {"kind": GroupKind.AVAILABILITY_SET, "update_domains": 5}
    return GroupSpec(name=WEB, **defaults | more)


def spec(name: str = "web-0", **more: Any) -> MachineSpec:
    return MachineSpec(name=MachineName(name), **{"host": HOST, "group": WEB, **more})


def fleet(*specs: MachineSpec, **more: Any) -> FleetSpec:
    return FleetSpec(**{"groups": (group(),), "hosts": (HostSpec(name=HOST),), "machines": specs, **more})


# Contradictions


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (
            fleet(spec(group=GroupName("wob"))),
            """machines[0] "web-0": group: expected one of the groups, got 'wob'""",
        ),
        (fleet(spec(group=None, project=ProjectName("x"))), 'machines[0] "web-0": project: expected one of'),
        (fleet(spec(host=HostName("x"))), 'machines[0] "web-0": host: expected one of the hosts, got'),
        (fleet(spec(update_domain=5)), 'machines[0] "web-0": update-domain: expected 0 to 4, got 5'),
        (fleet(spec(), spec("WEB-0")), 'machines[1] "WEB-0": name: expected a unique one, but machines[0]'),
        (
            fleet(groups=(group(project=ProjectName("x")),)),
            "groups.web: project: expected one of the projects",
        ),
        (
            fleet(spec(), groups=(group(policy=GroupPolicy(budget=1)),)),
            "groups.web: policy.budget: expected fewer than its 1 machine, got 1",
        ),
    ],
)
def test_a_contradictory_declaration_names_the_field(declared: FleetSpec, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        applying.validate(declared)
    assert str(refused.value).startswith(said)


def test_a_machine_without_a_host_and_a_feasible_budget_are_valid() -> None:
    applying.validate(fleet(spec(host=None), spec("web-1"), groups=(group(policy=GroupPolicy(budget=1)),)))


# Descriptions of changes


def test_each_change_is_described_in_a_line() -> None:
    made = Fleet(machine("web-0"))
    calendar = Calendar(blackout=frozenset({NOON.date()}))
    policy = GroupPolicy(auto_approve=True, notice=timedelta(hours=1))
    part = FleetChange(
        projects=(Project(name=DEFAULT_PROJECT, calendar=calendar),),
        defaults=FleetDefaults(driver="simulated"),
        hosts=(HostSpec(name=HOST, driver="external"),),
        groups=(group(policy=policy),),
    )
    assert applying.apply(made.draft, part, by="test") == (
        "~ project default: blackout",
        "~ defaults: driver none to simulated",
        "~ host host-1: driver none to external",
        "~ group web: auto-approve false to true, notice none to 1 h",
    )
    assert made.draft.changes().wake_all
    assert made.history(Kind.HOST_CHANGED) == ["driver none to external"]


def test_removing_the_default_driver_says_that_work_will_wait() -> None:
    made = Fleet(machine("web-0"))
    made.draft.defaults = FleetDefaults(driver="simulated")
    said = applying.apply(made.draft, FleetChange(defaults=FleetDefaults()), by="test")
    assert said == (f"~ defaults: driver simulated to none: {applying.WORK_WAITS}",)


def test_applying_again_changes_nothing() -> None:
    made = Fleet(machine("web-0"))
    part = FleetChange(
        projects=tuple(made.draft.projects.values()),
        defaults=made.draft.defaults,
        hosts=(HostSpec(name=HOST),),
        groups=(group(),),
        removed_machines=(MachineId("gone"),),
        machines=(DeclaredMachine(spec=present(made), known=None),),
        removed_groups=(GroupName("gone"),),
        removed_hosts=(HostName("gone"),),
        removed_projects=(ProjectName("gone"),),
    )
    assert applying.apply(made.draft, part, by="test") == ()
    assert made.draft.changes().empty


# Conflicts


def test_a_group_with_listed_events_keeps_its_kind() -> None:
    made = Fleet(machine("web-0"))
    made.order("web-0")
    deep = FleetChange(groups=(group(kind=GroupKind.SCALE_SET),))
    with pytest.raises(Conflict, match='group "web" has listed events: its kind and project cannot change'):
        applying.apply(made.draft, deep, by="test")
    applying.apply(made.draft, FleetChange(groups=(group(update_domains=6),)), by="test")


def test_a_host_with_machines_or_an_order_is_not_removed() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2", "host-3"])
    with pytest.raises(Conflict, match='hosts: "host-1" still carries "web-0": move it, or keep the host'):
        applying.apply(made.draft, FleetChange(removed_hosts=(HOST,)), by="test")
    order = made.maintain("host-1")
    made.draft.put_machine(replace(made.machine("web-0"), host=HostName("host-3")))
    with pytest.raises(Conflict) as refused:
        applying.apply(made.draft, FleetChange(removed_hosts=(HostName("host-2"), HOST)), by="test")
    said = f'hosts: "host-1" has order {order.id} (maintenance): cancel it, or keep the host'
    assert str(refused.value) == said


# One machine at a time


def present(made: Fleet, name: str = "web-0") -> MachineSpec:
    known = made.machine(name)
    return machines.spec_of(known, made.draft.groups[known.group])


def put(made: Fleet, declared: MachineSpec, name: str | None = "web-0") -> Machine:
    return machines.put(made.draft, declared, None if name is None else made.machine(name), by="test")


def test_a_new_machine_does_not_take_the_id_of_another() -> None:
    made = Fleet(machine("web-0"))
    taken = made.machine("web-0").id
    with pytest.raises(Conflict) as refused:
        put(made, spec("web-1", vm_id=taken), None)
    assert str(refused.value) == (
        f'machine "web-1": vm-id: "web-0" has {taken}: give this machine its own, or rename the other'
    )


def test_a_new_machine_needs_a_sound_host() -> None:
    made = Fleet(machine("web-0"))
    with pytest.raises(Invalid, match="host: expected its first host"):
        put(made, spec("web-1", host=None), None)
    with pytest.raises(Invalid, match="host: expected one of the hosts, got 'nowhere'"):
        put(made, spec("web-1", host=HostName("nowhere")), None)
    for state in (HostState.FAILED, HostState.LOST):
        made.draft.put_host(replace(made.draft.hosts[HOST], state=state))
        with pytest.raises(Conflict, match=f'host "host-1" is {state}: it cannot take "web-1"'):
            put(made, spec("web-1"), None)


def test_a_machine_is_added_changed_and_moved_outside_forewarn() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    added = put(made, spec("web-1", zone="1"), None)
    assert made.draft.machines[added.id].zone == "1"
    assert put(made, present(made)) == made.machine("web-0")
    assert put(made, replace(present(made), host=None)) == made.machine("web-0")
    assert put(made, replace(present(made), host=HostName("host-2"))).host == "host-2"
    assert made.history(Kind.MACHINE_MOVED) == ["host-1 to host-2"]


@pytest.mark.parametrize(("host", "state"), [("host-1", MachineState.STOPPED), (None, MachineState.RUNNING)])
def test_a_stopped_machine_stays_stopped_when_it_is_moved(host: str | None, state: MachineState) -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    stopped = replace(made.machine("web-0"), state=MachineState.STOPPED, host=host and HostName(host))
    made.draft.put_machine(stopped)
    assert put(made, replace(present(made), host=HostName("host-2"))).state is state


def test_a_machine_that_is_worked_on_is_not_moved() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    waiting = made.order("web-0")
    assert put(made, replace(present(made), host=HostName("host-2"))).host == "host-2"
    made.pass_(20 * MINUTE)
    assert made.running(waiting.id)
    with pytest.raises(
        Conflict, match=rf'machine "web-0" is in a running step of order {waiting.id} \(restart\)'
    ):
        put(made, replace(present(made), host=HOST))


def test_a_machine_that_an_event_names_keeps_its_name_and_group() -> None:
    made = Fleet(machine("web-0"), machine("web-1"))
    made.order("web-0")
    with pytest.raises(Conflict, match=r'machine "web-0" is named in event \w+: it cannot be renamed'):
        put(made, replace(present(made), name=MachineName("WEB-0")))
    assert put(made, replace(present(made, "web-1"), name=MachineName("WEB-1")), "web-1").name == "WEB-1"
    assert made.history(Kind.MACHINE_CHANGED) == ["name web-1 to WEB-1"]


def test_a_standalone_machine_has_a_group_of_its_own_until_it_joins_another() -> None:
    made = Fleet(machine("web-0"))
    alone = put(made, spec("alone", group=None), None)
    own = made.draft.groups[alone.group]
    assert own.kind is GroupKind.STANDALONE
    declared = machines.spec_of(alone, own)
    moved = machines.put(
        made.draft, replace(declared, project=ProjectName("shop"), zone="2"), alone, by="test"
    )
    assert made.draft.groups[own.name].project == "shop"
    joined = machines.put(made.draft, replace(declared, group=WEB), moved, by="test")
    assert (joined.group, own.name in made.draft.groups) == (WEB, False)


def bare_metal(*names: str) -> Fleet:
    made = Fleet(*(machine(name, name, group="train", mobility=Mobility.NONE) for name in names))
    made.draft.hosts |= {HostName(name): Host(name=HostName(name), bare_metal=True) for name in names}
    return made


def test_a_bare_metal_host_carries_only_its_own_machine() -> None:
    made = bare_metal("gpu01")
    with pytest.raises(Invalid, match='host: expected another host, because "gpu01" is bare metal'):
        put(made, spec("web-9", host=HostName("gpu01"), group=None), None)


def test_a_bare_metal_machine_cannot_move() -> None:
    made = bare_metal("gpu01", "gpu02")
    with pytest.raises(Invalid, match='host: expected "gpu01"'):
        put(made, replace(present(made, "gpu01"), host=HostName("gpu02")), "gpu01")
    with pytest.raises(Invalid, match='mobility: expected "none"'):
        put(made, replace(present(made, "gpu01"), mobility=Mobility.LIVE), "gpu01")
    assert put(made, replace(present(made, "gpu01"), size="h100"), "gpu01").size == "h100"


def test_a_host_that_carries_others_is_not_made_bare_metal() -> None:
    made = Fleet(machine("web-0"), machine("web-1"))
    part = FleetChange(hosts=(HostSpec(name=HostName("host-1"), bare_metal=True),))
    with pytest.raises(Conflict, match=r'hosts\.host-1: bare-metal: it still carries "web-0"'):
        applying.apply(made.draft, part, by="test")


def test_a_host_that_other_machines_move_to_is_not_made_bare_metal() -> None:
    made = Fleet(machine("web-0", bound_for=HostName("host-2")), hosts=["host-2"])
    part = FleetChange(hosts=(HostSpec(name=HostName("host-2"), bare_metal=True),))
    with pytest.raises(Conflict, match=r'hosts\.host-2: bare-metal: "web-0" is moving here'):
        applying.apply(made.draft, part, by="test")


def test_a_host_that_carries_only_its_own_machine_can_become_bare_metal() -> None:
    gpu = HostName("gpu01")
    made = Fleet(machine("gpu01", gpu, group="train", mobility=Mobility.NONE), machine("web-0"))
    applying.apply(made.draft, FleetChange(hosts=(HostSpec(name=gpu, bare_metal=True),)), by="test")
    assert made.draft.hosts[gpu].bare_metal


def test_a_machine_that_is_elsewhere_is_not_made_bare_metal() -> None:
    made = Fleet(machine("gpu01", "host-1", group="train"))
    declared = spec("gpu01", host=HostName("gpu01"), group=GroupName("train"), mobility=Mobility.NONE)
    part = FleetChange(
        hosts=(HostSpec(name=HostName("gpu01"), bare_metal=True),),
        machines=(DeclaredMachine(spec=declared, known=MachineId("gpu01")),),
    )
    with pytest.raises(Conflict, match='bare-metal: machine "gpu01" is on "host-1"'):
        applying.apply(made.draft, part, by="test")


ONE, TWO = HostName("host-1"), HostName("host-2")


def at_work(driver: str = "libvirt", work: Work = Work.REDEPLOY) -> tuple[Fleet, Order]:
    """Order a move of a machine from the first host to the second."""
    fleet = Fleet(machine("web-0"), hosts=[TWO, "host-3"])
    for name, host in list(fleet.draft.hosts.items()):
        fleet.draft.hosts[name] = replace(host, driver=driver, uri=f"qemu+ssh://{name}/system")
    order = fleet.maintain(work=work, driver=driver)
    fleet.pass_(HOUR / 4)
    return fleet, fleet.draft.orders[order.id]


def declare(fleet: Fleet, host: HostName, **fields: object) -> tuple[str, ...]:
    known = fleet.draft.hosts[host]
    spec = HostSpec(**{"name": host, "driver": known.driver, "uri": known.uri, **fields})  # type: ignore[arg-type]
    return applying.apply(fleet.draft, FleetChange(hosts=(spec,)), by="olga")


@pytest.mark.parametrize("host", [ONE, TWO])
def test_a_uri_does_not_change_while_a_step_runs_there(host: HostName) -> None:
    fleet, order = at_work()
    said = f'hosts.{host}: uri: order {order.id} .maintenance. is working there on "web-0": change the uri'
    with pytest.raises(Conflict, match=said):
        declare(fleet, host, uri="qemu+tls://elsewhere/system")
    assert fleet.draft.hosts[host].uri == f"qemu+ssh://{host}/system"


def test_other_fields_may_change_during_a_step_and_the_uri_afterwards() -> None:
    fleet, order = at_work()
    assert declare(fleet, ONE, at_once=7) == ("~ host host-1: at-once none to 7",)
    fleet.finish(order.id)
    assert declare(fleet, TWO, uri="test://") == ("~ host host-2: uri qemu+ssh://host-2/system to test://",)


def test_the_uri_of_an_uninvolved_host_may_change() -> None:
    fleet, _ = at_work()
    assert declare(fleet, HostName("host-3"), uri="test://")


def test_the_uri_may_change_if_the_driver_cannot_tell_the_state_of_the_step() -> None:
    fleet, order = at_work()
    (step,) = order.running
    reports.step_unknown(fleet.draft, AttemptId(order.id, step.machine, 1), why="no route to host-1")
    assert declare(fleet, ONE, uri="qemu+tls://host-1/system")


@pytest.mark.parametrize("driver", [SIMULATED, EXTERNAL])
def test_the_uri_may_change_if_the_driver_does_not_use_it(driver: str) -> None:
    fleet, _ = at_work(driver)
    assert declare(fleet, ONE, uri="test://")


def test_a_step_of_a_removed_machine_blocks_no_uri() -> None:
    fleet, _ = at_work(work=Work.REBOOT)
    fleet.draft.machines.clear()
    assert declare(fleet, ONE, uri="test://")


def test_a_step_on_the_host_itself_blocks_its_uri() -> None:
    fleet, _ = at_work(work=Work.REBOOT)
    order = next(iter(fleet.draft.orders.values()))
    working = HostStep(task=HostTask.FENCE, driver="libvirt", state=StepState.RUNNING)
    fleet.draft.put_order(replace(order, stages=(), host_steps=(working,)))
    with pytest.raises(Conflict, match='on "fence"'):
        declare(fleet, ONE, uri="test://")
    fleet.draft.put_order(replace(order, stages=(), host_steps=(replace(working, driver=HOOK),)))
    assert declare(fleet, ONE, uri="test://")
