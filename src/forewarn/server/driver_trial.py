"""A trial of a driver before it gets a fleet: calls for a step that no order contains."""

import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forewarn.clock import SystemClock, monotonic
from forewarn.config import Settings
from forewarn.control.driver import Cancelled, Done, DriverTask, Failed, NotBegun, Running, TooLate, Unknown
from forewarn.control.engine.driver_calls import (
    Answer,
    DriverCall,
    HostRefused,
    Possible,
    Reached,
    Verb,
    label_of,
    perform,
)
from forewarn.core.basic_types import STANDALONE, Action, GroupName, HostName, MachineId, OrderId, Work
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.model.declaration import FleetSpec, MachineSpec
from forewarn.core.model.host import Host
from forewarn.core.model.machine import TRAITS, Machine
from forewarn.core.text_formats import hint
from forewarn.core.time_formats import format_span
from forewarn.server.preparation import drivers_of, new_id
from forewarn.wire.texts import either, shown

# The work that can be tried on one machine, with the action that orders it.
ACTIONS = {
    Work.FREEZE: Action.FREEZE,
    Work.REBOOT: Action.RESTART,
    Work.REDEPLOY: Action.REDEPLOY,
    Work.EVICT: Action.EVICT,
    Work.TERMINATE: Action.TERMINATE,
    Work.START: Action.START,
}
# The wait before the next check if the driver names none, and the shortest wait.
ASK_AGAIN, SHORTEST_WAIT = timedelta(seconds=5), timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStep:
    """The step to try."""

    driver: str
    machine: str
    work: Work = Work.FREEZE
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCallAnswer:
    """The answer of a driver to one call."""

    call: str
    state: str  # in the format of command drivers
    says: str  # details for people
    seconds: float


def work_of(word: str | None) -> Work:
    """Parse the value of `--begin`."""
    if word is None:
        return Work.FREEZE
    if word not in ACTIONS:
        raise Invalid(f"--begin: expected {either(sorted(ACTIONS))}, got {shown(word)}{hint(word, ACTIONS)}")
    return Work(word)


class DriverTrial:
    """Calls a driver for one machine, as the engine does for an order."""

    def __init__(self, settings: Settings, fleet: FleetSpec, step: TrialStep) -> None:
        drivers = drivers_of(settings)
        drivers.known.check(step.driver)
        self._driver = drivers.by_name[step.driver]
        self._with_hooks = drivers.with_hooks[step.driver]
        if self._driver.limits is None:
            raise Conflict(f"driver {step.driver} is built into the server and needs no trial")
        self._clock = SystemClock()
        self._begun = False
        self._task = _task(fleet, step, now=self._clock.now())

    def check(self) -> tuple[TrialCallAnswer, bool]:
        """Check a step that has never begun; return whether the driver answers that it has not."""
        answer, written = self._call(Verb.CHECK)
        return written, isinstance(answer, NotBegun)

    def carry_out(self) -> Iterator[tuple[TrialCallAnswer, bool]]:
        """Begin the step and check it until it ends; yield each answer and whether the step is done."""
        self._begun = True
        answer, written = self._call(Verb.BEGIN)
        while True:
            yield written, isinstance(answer, Done)
            if not isinstance(answer, Running | Unknown):
                return
            now = self._clock.now()
            wait = max((answer.look_at or now + ASK_AGAIN) - now, SHORTEST_WAIT)
            threading.Event().wait(wait.total_seconds())
            if isinstance(answer, Running) and answer.mark:
                self._task = replace(self._task, mark=answer.mark)
            answer, written = self._call(Verb.CHECK)

    def cancel(self) -> TrialCallAnswer:
        """Cancel the step."""
        return self._call(Verb.CANCEL)[1]

    def _call(self, verb: Verb) -> tuple[Answer, TrialCallAnswer]:
        began = monotonic()
        self._task = replace(self._task, now=self._clock.now())
        # Without hooks until the step has begun: a hook may act even on a check.
        driver = self._with_hooks if self._begun else self._driver
        answer = perform(driver, DriverCall(verb=verb, task=self._task))
        state, says = _written(answer)
        return answer, TrialCallAnswer(
            call=verb.value, state=state, says=says, seconds=round(monotonic() - began, 2)
        )


def _task(fleet: FleetSpec, step: TrialStep, *, now: datetime) -> DriverTask:
    machine = next((each for each in fleet.machines if each.name == step.machine), None)
    if machine is None:
        known = (each.name for each in fleet.machines)
        raise NotFound(f'machine "{step.machine}" is not in the fleet{hint(step.machine, known)}')
    if step.work is Work.REDEPLOY and step.target is None:
        raise Invalid("--to: expected the target host of the machine")
    return DriverTask(
        order=OrderId(new_id()),
        attempt=1,
        action=ACTIONS[step.work],
        work=step.work,
        machine=_machine(machine),
        source=_host(fleet, machine.host) if machine.host is not None else None,
        target=_host(fleet, HostName(step.target)) if step.target is not None else None,
        begun_at=now,
        now=now,
        driver=step.driver,
    )


def _machine(spec: MachineSpec) -> Machine:
    id_ = spec.vm_id or MachineId(str(uuid.uuid5(uuid.NAMESPACE_OID, f"{spec.project}/{spec.name}")))
    return Machine(
        id=id_,
        name=spec.name,
        project=spec.project,
        group=spec.group or GroupName(f"{STANDALONE}{id_}"),
        host=spec.host,
        **{name: getattr(spec, name) for name in TRAITS},
    )


def _host(fleet: FleetSpec, name: HostName) -> Host:
    spec = next((each for each in fleet.hosts if each.name == name), None)
    if spec is None:
        raise NotFound(f'host "{name}" is not in the fleet{hint(name, (each.name for each in fleet.hosts))}')
    return Host(name=spec.name, driver=spec.driver, uri=spec.uri, labels=spec.labels)


def _written(answer: Answer) -> tuple[str, str]:
    match answer:
        case Done(host=host, impact=impact):
            away = "" if impact is None else f"away for {format_span(timedelta(seconds=impact))}"
            return "done", ", ".join(filter(None, (f"on {host}" if host else "", away)))
        case Running(progress=progress, mark=mark):
            far = "" if progress is None else f"{progress:.0%}"
            return "running", ", ".join(filter(None, (far, f"mark {mark}" if mark else "")))
        case Failed(why=why) | Unknown(why=why) | HostRefused(why=why):
            return label_of(answer), why
        case NotBegun():
            return "not-begun", ""
        case TooLate():
            return "too-late", ""
        case Cancelled() | Possible():
            return label_of(answer), ""
        case Reached(why=why):
            return ("reached", "") if why is None else ("unreachable", why)
