"""Small values to save, so that each test states only what matters to it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    EventId,
    EventStatus,
    EventType,
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    Source,
    StageState,
    StepState,
    Work,
)
from forewarn.core.model.changes import Changes
from forewarn.core.model.event import Event, Resource
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Stage, Step
from forewarn.core.model.project import Project
from forewarn.core.model.record import Record
from forewarn.core.model.slice import Slice
from forewarn.core.session_cookies import BrowserSession
from forewarn.store.batch import Transaction
from forewarn.store.store import Store
from tests.helpers.database.transactions import writing

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def order_id(number: int) -> OrderId:
    return OrderId(f"AAAAAAAA-0000-4000-8000-{number:012X}")


def event_id(number: int) -> EventId:
    return EventId(f"EEEEEEEE-0000-4000-8000-{number:012X}")


def machine_id(name: str) -> MachineId:
    return MachineId(f"00000000-0000-4000-8000-{name.encode().hex():0>12}")


def session(number: int, **more: Any) -> BrowserSession:
    """Return a browser session; the number determines its time."""
    begun = NOW + number * SECOND
    defaults: dict[str, Any] = {
        "digest": f"{number:064x}",
        "token": "of-anna",
        "created_at": begun,
        "expires_at": begun + timedelta(days=7),
    }
    return BrowserSession(**defaults | more)


def group(name: str = "web", **more: Any) -> Group:
    defaults: dict[str, Any] = {
        "project": DEFAULT_PROJECT,
        "kind": GroupKind.AVAILABILITY_SET,
        "update_domains": 3,
    }
    return Group(name=GroupName(name), **defaults | more)


def host(name: str, **more: Any) -> Host:
    return Host(name=HostName(name), **more)


def machine(name: str, **more: Any) -> Machine:
    defaults: dict[str, Any] = {
        "id": machine_id(name),
        "project": DEFAULT_PROJECT,
        "group": GroupName("web"),
        "host": HostName("host-1"),
    }
    return Machine(name=MachineName(name), **defaults | more)


def step(name: str, state: StepState = StepState.WAITING, **more: Any) -> Step:
    defaults: dict[str, Any] = {
        "machine": machine_id(name),
        "group": GroupName("web"),
        "update_domain": 0,
        "work": Work.REBOOT,
    }
    return Step(name=MachineName(name), state=state, **defaults | more)


def stage(*steps: Step) -> Stage:
    return Stage(state=StageState.ANNOUNCED, steps=steps)


def order(number: int, **more: Any) -> Order:
    defaults: dict[str, Any] = {
        "id": order_id(number),
        "action": Action.RESTART,
        "work": Work.REBOOT,
        "source": Source.USER,
        "project": DEFAULT_PROJECT,
        "machine": None,
        "machine_name": None,
        "host": None,
        "by": "test",
        "driver": "simulated",
        "created_at": NOW,
    }
    return Order(number=number, **defaults | more)


def event(number: int, **more: Any) -> Event:
    defaults: dict[str, Any] = {
        "id": event_id(number),
        "order": order_id(1),
        "stage": 0,
        "group": GroupName("web"),
        "update_domain": 0,
        "type": EventType.REBOOT,
        "status": EventStatus.SCHEDULED,
        "source": Source.USER,
        "description": "",
        "duration_seconds": -1,
        "resources": (Resource(machine=machine_id("web-0"), name=MachineName("web-0")),),
        "announced_at": NOW,
        "not_before": NOW + 900 * SECOND,
        "armed_at": NOW,
    }
    return Event(number=number, **defaults | more)


def record(number: int, **more: Any) -> Record:
    defaults: dict[str, Any] = {"at": NOW, "kind": "order-placed"}
    return Record(number=number, **defaults | more)


def save(to: Store | Transaction, *, now: datetime = NOW, **changes: Any) -> int:
    """Save values like one use case; return the number of the feed afterwards."""
    with writing(to) as tx:
        tx.changes.save(changes_on(tx.rules.everything(), now=now, **changes))
        return tx.rules.everything().number


def changes_on(base: Slice, *, now: datetime = NOW, **changes: Any) -> Changes:
    """Return changes as a draft would have made them."""
    orders = {each.id for each in changes.get("orders", ())}
    machines = {each.id for each in changes.get("machines", ())} | {*changes.get("removed_machines", ())}
    return Changes(
        now=now,
        as_of=base.number,
        orders_before={id_: order for id_, order in base.orders.items() if id_ in orders},
        machines_before={id_: each for id_, each in base.machines.items() if id_ in machines},
        **changes,
    )


def save_fleet(store: Store, machines: Iterable[Machine] = (), *, hosts: Iterable[str] = ("host-1",)) -> int:
    """Save a group, some hosts and machines."""
    return save(
        store,
        projects=(Project(name=DEFAULT_PROJECT),),
        hosts=tuple(host(name) for name in hosts),
        groups=(group(),),
        machines=tuple(machines),
    )


def everything(store: Store) -> Slice:
    with store.read() as snapshot:
        return snapshot.rules.everything()
