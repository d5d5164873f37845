"""Messages for drivers that a use case has committed and the engine has not delivered yet."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from forewarn.control.driver import DriverTask
from forewarn.core.basic_types import HostName, MachineId, Work
from forewarn.core.draft import Draft
from forewarn.core.model.host import Host
from forewarn.core.model.order import AttemptId, HostStep, Order, Step
from forewarn.core.orders import host_work, service


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningStep:
    """A running step, with the task for its driver."""

    task: DriverTask
    look_at: datetime | None  # when to call the driver again, if that is a moment of service time
    given_up: bool  # its order is being abandoned: the driver is asked to cancel the step


@dataclass(slots=True)
class DriverOutbox:
    """Committed changes of steps that no driver knows yet. In memory only. Owner: the worker."""

    running: dict[AttemptId, RunningStep] = field(default_factory=dict)  # begun, or changed since
    ended: set[AttemptId] = field(default_factory=set)
    hosts: dict[HostName, Host] = field(default_factory=dict)  # with changed connection settings
    prechecks: list[DriverTask] = field(default_factory=list)  # of moves that are not announced yet
    # Whether steps may run that are missing here: after a start, or after an uncertain commit.
    incomplete: bool = True

    def __bool__(self) -> bool:
        return bool(self.running or self.ended or self.hosts or self.prechecks or self.incomplete)

    def add(
        self,
        running: Iterable[RunningStep],
        ended: Iterable[AttemptId],
        hosts: Iterable[Host],
        prechecks: Iterable[DriverTask],
    ) -> None:
        """Add what a transaction has committed."""
        self.prechecks += prechecks
        self.running.update((step.task.id, step) for step in running)
        self.ended.update(ended)
        self.hosts.update((host.name, host) for host in hosts)

    def mark_incomplete(self) -> None:
        """Have the engine read the running steps from the store, after an uncertain commit."""
        self.incomplete = True

    def take(self) -> tuple[dict[AttemptId, RunningStep], set[AttemptId], dict[HostName, Host]]:
        """Remove and return everything except the prechecks."""
        taken = self.running, self.ended, self.hosts
        self.running, self.ended, self.hosts = {}, set(), {}
        return taken

    def take_prechecks(self) -> list[DriverTask]:
        """Remove and return the prechecks."""
        taken, self.prechecks = self.prechecks, []
        return taken


def new_prechecks(draft: Draft) -> list[DriverTask]:
    """Return the moves of a draft whose drivers must confirm them before the announcement."""
    found = list[DriverTask]()
    for order in draft.orders.values():
        known = draft.base.orders.get(order.id)
        if order is known:
            continue
        asked = {(step.machine, step.work, step.precheck) for step in (known.steps if known else ())}
        for step in order.steps:
            precheck = step.precheck
            if precheck is None or precheck.answered_at is not None:
                continue
            if (step.machine, step.work, precheck) not in asked:
                (running,) = running_steps(draft, order, [step])
                found.append(replace(running.task, target=_host(draft, precheck.target)))
    return found


def changed_steps(draft: Draft) -> tuple[list[RunningStep], list[AttemptId]]:
    """Return the steps that a draft has begun or changed, and the attempts that it has ended."""
    running, ended = list[RunningStep](), list[AttemptId]()
    for order in draft.orders.values():
        known = draft.base.orders.get(order.id)
        if order is known or order == known:
            continue
        before = {} if known is None else _by_attempt(known)
        now = _by_attempt(order)
        given_up = known is not None and order.terms.abandoned_by != known.terms.abandoned_by
        running += running_steps(
            draft, order, [step for id_, step in now.items() if given_up or step != before.get(id_)]
        )
        ended += before.keys() - now.keys()
    return running, ended


def _by_attempt(order: Order) -> dict[AttemptId, Step | HostStep]:
    return {AttemptId(order.id, step.subject, step.attempt): step for step in order.driven}


def reconnected_hosts(draft: Draft) -> list[Host]:
    """Return the hosts whose connection settings a draft has changed."""
    known = draft.base.hosts
    return [
        host
        for name, host in draft.hosts.items()
        if name in known and (known[name].uri, known[name].at_once) != (host.uri, host.at_once)
    ]


def running_steps(draft: Draft, order: Order, steps: Iterable[Step | HostStep]) -> list[RunningStep]:
    """Return steps of an order with the tasks for their drivers."""
    deadlines = _deadlines(draft, order)
    return [_running(draft, order, step, deadlines) for step in steps]


def _running(
    draft: Draft, order: Order, step: Step | HostStep, deadlines: Mapping[MachineId, datetime]
) -> RunningStep:
    fields: dict[str, Any]
    if isinstance(step, HostStep):
        source = _host(draft, order.host)
        fields = {"work": Work.HOST, "task": step.task, "machine": None, "source": source, "target": None}
    else:
        fields = _machine_fields(draft, order, step) | {"deadline": deadlines.get(step.machine)}
    task = DriverTask(
        **fields,
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
    return RunningStep(task=task, look_at=step.look_at, given_up=given_up)


def _machine_fields(draft: Draft, order: Order, step: Step) -> dict[str, Any]:
    machine = draft.machines[step.machine]
    verifies = any(step is each for each in service.staying(order))
    source = _host(draft, machine.host)
    if source is None and machine.last_host is not None and not step.moves:
        source = draft.hosts.get(machine.last_host)  # a stopped machine is on no host
    return {
        "work": Work.START if verifies else step.work,
        "verifies": verifies,
        "machine": machine,
        "source": source,
        "target": _host(draft, step.target),
        "moves": step.moves,
    }


def _host(draft: Draft, name: HostName | None) -> Host | None:
    """Return a host; if it is not loaded, only its name is set."""
    return None if name is None else draft.hosts.get(name, Host(name=name))


def _deadlines(draft: Draft, order: Order) -> Mapping[MachineId, datetime]:
    """Return when each machine's step should end, according to the duration in its event."""
    deadlines: dict[MachineId, datetime] = {}
    for event in draft.events_of(order.id):
        if event.started_at is not None and event.duration_seconds >= 0:
            over = event.started_at + timedelta(seconds=event.duration_seconds)
            for resource in event.resources:
                deadlines.setdefault(resource.machine, over)
    return deadlines
