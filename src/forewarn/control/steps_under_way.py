"""Steps that use cases have saved as running, on their way to the drivers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from forewarn.control.driver import DriverTask
from forewarn.core.basic_types import HostName, MachineId, Work
from forewarn.core.draft import Draft
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, HostStep, Order, Step
from forewarn.core.orders import host_work, service


@dataclass(frozen=True, slots=True, kw_only=True)
class StepUnderWay:
    """A step that runs, as its driver is given it."""

    task: DriverTask
    look_at: datetime | None  # when its driver is to be asked again, if that is a moment of service time
    given_up: bool  # its order is being abandoned: its driver is asked to call it off


@dataclass(slots=True)
class StepsUnderWay:
    """What was saved of steps and no driver has been told yet; in memory, and only once it is saved.

    Owner of all its values: the worker.
    """

    running: dict[AttemptId, StepUnderWay] = field(default_factory=dict)  # begun, or changed since
    ended: set[AttemptId] = field(default_factory=set)
    hosts: dict[HostName, Host] = field(default_factory=dict)  # that are reached in another way now
    prechecks: list[DriverTask] = field(default_factory=list)  # of moves that are to be announced
    # Whether something may run that is not here: what was saved before the start, or may have been saved.
    incomplete: bool = True

    def __bool__(self) -> bool:
        return bool(self.running or self.ended or self.hosts or self.prechecks or self.incomplete)

    def note(
        self,
        running: Iterable[StepUnderWay],
        ended: Iterable[AttemptId],
        hosts: Iterable[Host] = (),
        prechecks: Iterable[DriverTask] = (),
    ) -> None:
        """Take over what was saved."""
        self.prechecks += prechecks
        self.running.update((step.task.id, step) for step in running)
        self.ended.update(ended)
        self.hosts.update((host.name, host) for host in hosts)

    def lose(self) -> None:
        """Take note that it cannot be told whether something was saved."""
        self.incomplete = True

    def take(self) -> tuple[dict[AttemptId, StepUnderWay], set[AttemptId], dict[HostName, Host]]:
        """Hand everything over."""
        taken = self.running, self.ended, self.hosts
        self.running, self.ended, self.hosts = {}, set(), {}
        return taken

    def take_prechecks(self) -> list[DriverTask]:
        """Hand over what drivers are to be asked beforehand."""
        taken, self.prechecks = self.prechecks, []
        return taken


def to_precheck(draft: Draft) -> list[DriverTask]:
    """Return the moves that a draft wants drivers to be asked about before they are announced."""
    found = list[DriverTask]()
    for order in draft.orders.values():
        known = draft.base.orders.get(order.id)
        if order is known:
            continue
        asked = set() if known is None else {(step.machine, step.work, step.precheck) for step in known.steps}
        for step in order.steps:
            precheck = step.precheck
            if precheck is None or precheck.answered_at is not None:
                continue
            if (step.machine, step.work, precheck) in asked:
                continue
            (under_way,) = steps_of(draft, order, [step])
            found.append(replace(under_way.task, target=_host(draft, precheck.target)))
    return found


def changed(draft: Draft) -> tuple[list[StepUnderWay], list[AttemptId]]:
    """Return the steps that a draft has begun or changed, and those that run no more."""
    running, ended = list[StepUnderWay](), list[AttemptId]()
    for order in draft.orders.values():
        known = draft.base.orders.get(order.id)
        if order is known or order == known:
            continue
        before = {} if known is None else {_id(known, step): step for step in known.driven}
        now = {_id(order, step): step for step in order.driven}
        given_up = known is not None and order.terms.abandoned_by != known.terms.abandoned_by
        running += steps_of(
            draft, order, [step for id_, step in now.items() if given_up or step != before.get(id_)]
        )
        ended += before.keys() - now.keys()
    return running, ended


def reached_anew(draft: Draft) -> list[Host]:
    """Return the hosts that a draft has drivers reach in another way than before."""
    known = draft.base.hosts
    return [
        host
        for name, host in draft.hosts.items()
        if name in known and (known[name].uri, known[name].at_once) != (host.uri, host.at_once)
    ]


def steps_of(draft: Draft, order: Order, steps: Iterable[Step | HostStep]) -> list[StepUnderWay]:
    """Return running steps of an order as their drivers are given them."""
    deadlines = _deadlines(draft, order)
    return [_under_way(draft, order, step, deadlines) for step in steps]


def _under_way(
    draft: Draft, order: Order, step: Step | HostStep, deadlines: Mapping[MachineId, datetime]
) -> StepUnderWay:
    about = (
        _of_host(draft, order, step)
        if isinstance(step, HostStep)
        else _of_machine(draft, order, step, deadlines.get(step.machine))
    )
    task = DriverTask(
        **about,
        order=order.id,
        attempt=step.attempt,
        action=order.action,
        begun_at=step.begun_at or draft.now,
        now=draft.now,
        mark=step.mark,
        driver=order.driver_of(step),
        heartbeat=order.terms.heartbeat,
        taken_up_at=step.taken_up_at,
    )
    given_up = bool(order.terms.abandoned_by) and not host_work.uncordons_unfinished_host(order, step)
    return StepUnderWay(task=task, look_at=step.look_at, given_up=given_up)


def _of_machine(draft: Draft, order: Order, step: Step, deadline: datetime | None) -> dict[str, Any]:
    machine = draft.machines[step.machine]
    verifies = any(step is each for each in service.staying(order))
    return {
        "work": Work.START if verifies else step.work,
        "verifies": verifies,
        "machine": machine,
        "source": _host(draft, machine.host) or _left_on(draft, step, machine),
        "target": _host(draft, step.target),
        "moves": step.moves,
        "deadline": deadline,
    }


def _left_on(draft: Draft, step: Step, machine: Machine) -> Host | None:
    """Return the host that a machine was on last, where what becomes of it is done if it is not to move."""
    return draft.hosts.get(machine.last_host) if machine.last_host is not None and not step.moves else None


def _of_host(draft: Draft, order: Order, step: HostStep) -> dict[str, Any]:
    source = _host(draft, order.host)
    return {"work": Work.HOST, "task": step.task, "machine": None, "source": source, "target": None}


def _id(order: Order, step: Step | HostStep) -> AttemptId:
    return AttemptId(order.id, step.subject, step.attempt)


def _host(draft: Draft, name: HostName | None) -> Host | None:
    """Return a host; one that a machine is sent to need not be loaded, and is then only named."""
    return None if name is None else draft.hosts.get(name, Host(name=name))


def _deadlines(draft: Draft, order: Order) -> Mapping[MachineId, datetime]:
    """Return when the steps of machines should be over, as their guests were told; none that were not."""
    deadlines: dict[MachineId, datetime] = {}
    for event in draft.events_of(order.id):
        if event.started_at is not None and event.duration_seconds >= 0:
            over = event.started_at + timedelta(seconds=event.duration_seconds)
            for resource in event.resources:
                deadlines.setdefault(resource.machine, over)
    return deadlines
