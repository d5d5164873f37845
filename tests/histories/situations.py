"""The situations that histories reach: a rule without its situation is not tested."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from forewarn.core.basic_types import EXTERNAL, Action, EventStatus, HostState, Kind, Priority, StepState
from forewarn.core.model.record import Record
from forewarn.core.model.slice import Slice

# Of a hundred histories, at least so many reach each situation.
PERCENT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The fleet after an action, and the records of the action."""

    fleet: Slice
    records: Sequence[Record]

    def recorded(self, kind: Kind, words: str = "") -> bool:
        return any(record.kind == kind and words in record.reason for record in self.records)

    def waits(self, words: str) -> bool:
        reasons = (why.reason for order in self.fleet.orders.values() for why in order.waiting)
        return any(words in reason for reason in reasons)


Situation: TypeAlias = Callable[[Look], bool]


def _waits(words: str) -> Situation:
    return lambda look: look.waits(words)


def _recorded(kind: Kind, words: str = "") -> Situation:
    return lambda look: look.recorded(kind, words)


def _has_latecomer(look: Look) -> bool:
    """Whether a stage has events that were announced one after another."""
    moments: dict[tuple[str, int], set[object]] = {}
    for event in look.fleet.events.values():
        moments.setdefault((event.order, event.stage), set()).add(event.announced_at)
    return any(len(each) > 1 for each in moments.values())


def _has_latecomer_of_another_domain(look: Look) -> bool:
    """Whether an announced host got a machine that cannot join its stage."""
    for order in look.fleet.orders.values():
        later = [step for stage in order.stages if stage.state == "queued" for step in stage.steps]
        for stage in order.stages:
            if stage.state == "announced":
                mine = {step.group: step.update_domain for step in stage.steps}
                if any(mine.get(step.group, step.update_domain) != step.update_domain for step in later):
                    return True
    return False


def _announced_to_a_disabled_group(look: Look) -> bool:
    """Whether a user's order is announced to a group that is no longer enabled (rule 12)."""
    return any(
        not look.fleet.groups[event.group].enabled and look.fleet.orders[event.order].action is Action.RESTART
        for event in look.fleet.events.values()
    )


def _moves_past_a_cordoned_host(look: Look) -> bool:
    cordoned = any(host.state is HostState.CORDONED for host in look.fleet.hosts.values())
    steps = (step for order in look.fleet.orders.values() for step in order.steps)
    return cordoned and any(step.target and step.state is StepState.RUNNING for step in steps)


def _waits_for_grace(look: Look) -> bool:
    grace = look.fleet.grace
    return grace is not None and any(
        event.status is EventStatus.SCHEDULED and event.not_before < grace.until
        for event in look.fleet.events.values()
        if event.announced_at <= grace.announced_before
    )


def _done_outside(look: Look) -> bool:
    return any(
        order.driver == EXTERNAL and step.state is StepState.DONE
        for order in look.fleet.orders.values()
        for step in order.steps
    )


def _evicts_an_announced_machine(look: Look) -> bool:
    spot = {each.id for each in look.fleet.machines.values() if each.priority is Priority.SPOT}
    return bool(spot) and look.recorded(Kind.EVENT_LEFT, "superseded by")


def _ignores(words: str) -> Situation:
    def found(look: Look) -> bool:
        broken = (record.reason for record in look.records if record.kind == Kind.PROMISE_BROKEN)
        return any("announced although" in reason and words in reason for reason in broken)

    return found


def _approved_and_unarmed(look: Look) -> bool:
    return any(event.approved and not event.armed and not event.hint for event in look.fleet.events.values())


def _gang_together(look: Look) -> bool:
    return any(
        look.fleet.groups[group].policy.gang and len(domains) > 1
        for group, domains in look.fleet.armed.items()
    )


def _frozen_together(look: Look) -> bool:
    return any(
        look.fleet.groups[group].policy.freezes_at_once
        and sum(each.freezes > 0 for each in armed.values()) > 1
        for group, armed in look.fleet.armed.items()
    )


SITUATIONS: Mapping[str, Situation] = {
    "started because NotBefore passed": _recorded(Kind.EVENT_STARTED, "NotBefore has passed"),
    "started because it was approved": _recorded(Kind.EVENT_STARTED, "approved by"),
    "started because a host failed": _recorded(Kind.EVENT_STARTED, " failed"),
    "an emergency breaks a promise": _recorded(Kind.PROMISE_BROKEN, "of notice instead of"),
    "update domains are disturbed together": _recorded(Kind.PROMISE_BROKEN, "disturbed together"),
    "an emergency ignores reasons to wait": _recorded(Kind.PROMISE_BROKEN, "announced although"),
    "an emergency ignores another update domain": _ignores("waits for domain"),
    "an emergency ignores a hold": _ignores("held by"),
    "a NotBefore moves for another update domain": _recorded(Kind.EVENT_POSTPONED, "waits for domain"),
    "an approved event waits to be armed": _approved_and_unarmed,
    "a gang is disturbed together": _gang_together,
    "machines of several domains are frozen together": _frozen_together,
    "a machine never received its event": _recorded(Kind.NOTICE_NEVER),
    "a whole host carries a machine without an event": _waits("was not notified of this work"),
    "a machine leaves an event": _recorded(Kind.EVENT_LEFT),
    "an eviction takes a machine out of an event": _evicts_an_announced_machine,
    "waits for another update domain": _waits("waits for domain"),
    "waits for a budget": _waits("healthy"),
    "waits for a window": _waits("outside the window"),
    "waits for a hold": _waits("held by"),
    "waits for a machine of another order": _waits("to finish with it"),
    "waits for the grace after a jump": _waits_for_grace,
    "a second stage comes": lambda look: any(event.stage > 0 for event in look.fleet.events.values()),
    "a latecomer joins a stage": _has_latecomer,
    "a latecomer cannot join": _has_latecomer_of_another_domain,
    "withdrawn because it could not start": _recorded(Kind.EVENT_WITHDRAWN, "could not start"),
    "deferred": _recorded(Kind.EVENT_DEFERRED),
    "a step failed": _recorded(Kind.STEP_FAILED),
    "done outside": _done_outside,
    "moves while a host is cordoned": _moves_past_a_cordoned_host,
    "a failed host waits to be fenced": _waits("once it is fenced"),
    "a host cannot be fenced": _recorded(Kind.STEP_FAILED, "fence of the host"),
    "a person confirms that a host is isolated": _recorded(Kind.HOST_FENCED),
    "a host is lost": _recorded(Kind.HOST_LOST),
    "a person waits for a lost host": _recorded(Kind.HOST_CHANGED, "waited for until"),
    "a lost host comes back": _recorded(Kind.HOST_CHANGED, "a report on the work on it"),
    "a group becomes idle": _recorded(Kind.GROUP_DISABLED),
    "announced again to a disabled group": _announced_to_a_disabled_group,
    "an outage": _recorded(Kind.SERVICE_AWAY),
    "the clock jumped": _recorded(Kind.CLOCK_JUMPED),
}


class Reached:
    """Counts how many histories reached each situation."""

    def __init__(self, situations: Mapping[str, Situation]) -> None:
        self._situations = situations
        self._counts: Counter[str] = Counter()
        self._histories = 0

    def begin(self) -> None:
        """Begin another history."""
        self._histories += 1
        self._left = dict(self._situations)

    def look(self, look: Look) -> None:
        """Record the situations that a history reached."""
        for name in [name for name, situation in self._left.items() if situation(look)]:
            del self._left[name]
            self._counts[name] += 1

    def too_seldom(self) -> Iterable[str]:
        """List the situations that too few histories reached."""
        for name in self._situations:
            if self._counts[name] * 100 < PERCENT * self._histories:
                yield f"{name}: {self._counts[name]} of {self._histories} histories"

    def __str__(self) -> str:
        return "\n".join(f"{self._counts[name]:5} of {self._histories} {name}" for name in self._situations)
