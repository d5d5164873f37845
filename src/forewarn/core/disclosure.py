"""What the people of a project are shown: not which host, not which operator, and nothing of others.

What operators and drivers write may name anything: people, addresses, users and paths of hypervisors, other
projects' machines. It is marked when it comes in (`mark_operator_text`, `mark_driver_text`), and a project reads
only that it was said. The rest of a reason is forewarn's own. It is looked through for names, as forewarn
writes them. What a project's own people have said is shown as they said it, or an answer would tell which
words are names. Operators allow a project to see hosts and operators with `sees-hosts`, but no more.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, TypeVar

from forewarn.core.basic_types import DECLARED, FOREWARN, HOOK, SIMULATED, ApprovedBy, Kind, ProjectName
from forewarn.core.model.constraints import FLEET_REACH, Waiting
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import HostStep, Order, OrderTerms, Stage, Step
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import Webhook
from forewarn.core.redaction import (
    DRIVER,
    END,
    without_drivers,
    without_operators_words,
    without_other_machines,
    without_other_projects,
)

V = TypeVar("V", Machine, Group, Order, Event, Record, Webhook)

# What stands in the place of the names.
OPERATOR = "operator"
A_HOST = "a host"
A_MACHINE = "another machine"
A_GROUP = "another group"
A_PROJECT = "another project"
# What is shown for the name of a driver; that nothing is really done is known from elsewhere, too.
A_DRIVER = "platform"
ANOTHER_GUEST = "another project's guest"
# What a project sees of that for which an order waits and which is not its own.
OTHER_PROJECTS_REASON = Waiting(what="the platform", reason="waits for something that is not of your project")
# Of work that is not the server's own.
DONE_OUTSIDE = "waits for those who run the hosts to do it"

# Of what a driver said.
TOLD_OPERATORS = "its driver has told the operators why"

_DRIVER_SAYS = "its driver says: "
_HOOK_SAYS = "its hook says: "
# How texts go on that have words of a driver in them, to their ends.
_DRIVERS_WORDS = re.compile(
    rf"(?:{_DRIVER_SAYS}|{_HOOK_SAYS}).*|{DRIVER}[^{END}]*{END} (?P<fault>broke|cannot be used): .*",
    re.DOTALL,
)
ITS_DRIVER = "its driver"
# Where hypervisors are reached. Links of the web are for people, and stay.
_ADDRESS = re.compile(r"\b(?!https?:)[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
AN_ADDRESS = "an address"

_WORD = re.compile(r"[A-Za-z0-9._-]+")
_PART = re.compile(r"[A-Za-z0-9]+")
_SEPARATORS = "._-"
_LONGEST_NAME = 64
# As machines are called, not as sentences go on: `db-3`, but neither `failed` nor `2026`.
_LIKE_A_NAME = re.compile(r"(?=.*[a-z])(?=.*[0-9._-])")
# A name as sentences have it: `host kvm-1`, `"kvm-1"`.
_NAMED = re.compile(rf"(?:\b[Hh]ost )?(?P<quote>[\"']?)(?P<word>{_WORD.pattern})(?P=quote)")
# What only the people of a project say, if they say it; of a project's webhooks, its addresses.
_SAID = frozenset({Kind.ORDER_PLACED, Kind.REHEARSAL_BEGUN, Kind.REHEARSAL_FAULTS, Kind.REHEARSAL_ENDED})
_OF_WEBHOOKS = frozenset(
    {Kind.WEBHOOK_ADDED, Kind.WEBHOOK_REMOVED, Kind.WEBHOOK_FAILING, Kind.WEBHOOK_RECOVERED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Which of some words are names.

    The first three are of what a project must not read, in lower case; the others are of its own things.
    """

    hosts: frozenset[str] = frozenset()  # those that were removed too
    others: frozenset[str] = frozenset()  # people of no project, or of another one
    strangers: frozenset[str] = frozenset()  # machines of other projects
    other_groups: frozenset[str] = frozenset()  # these two as they are written
    other_projects: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()
    machines: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()  # listed ones, by their ids


def mark_driver_text(text: str, driver: str = "") -> str:
    """Mark a text as a driver's own, or a hook's, which operators alone read; once is enough."""
    if text.startswith((_DRIVER_SAYS, _HOOK_SAYS)):
        return text
    return f"{_HOOK_SAYS if driver == HOOK else _DRIVER_SAYS}{text}"


def unmark_driver_text(text: str) -> str:
    """Return a text without its mark, for operators alone."""
    return text.removeprefix(_DRIVER_SAYS).removeprefix(_HOOK_SAYS)


def _without_drivers_words(said: str) -> str:
    said = _DRIVERS_WORDS.sub(
        lambda found: f"{ITS_DRIVER} {found['fault']}" if found["fault"] else TOLD_OPERATORS, said
    )
    return without_drivers(said, other=ITS_DRIVER)


def words(values: Iterable[object]) -> frozenset[str]:
    """Return all words of some values that may be names."""
    return frozenset(chain.from_iterable(map(_words_of, values)))


def words_in(text: str) -> Iterator[str]:
    """Give the words of a text that may be names, and what in them may be one."""
    for word in _WORD.findall(text):
        yield from _candidates(word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What the people of a project are shown of values that they may find."""

    project: ProjectName
    names: Names
    sees_hosts: bool = False

    def shown(self, value: V) -> V:
        """Return a value as the project's people see it."""
        if isinstance(value, Machine):
            source = self._source(value.source)
            if self.sees_hosts:
                return replace(value, source=source)
            return replace(value, source=source, host=None, last_host=None, bound_for=None)
        if isinstance(value, Group):
            return replace(value, source=self._source(value.source))
        if isinstance(value, Order):
            return self._order(value)
        if isinstance(value, Event):
            return self._event(value)
        if isinstance(value, Record):
            return self._record(value)
        return replace(value, by=self.person(value.by))

    def person(self, name: str) -> str:
        """Return the name of one of the project's people, or the service's; else that it is an operator."""
        if self.sees_hosts or name in ("", FOREWARN) or name in self.names.people:
            return name
        return OPERATOR

    def _source(self, source: str) -> str:
        return source if source == DECLARED else A_DRIVER

    def text(self, said: str) -> str:
        """Return a text without names of others, and without a driver's or an operator's words."""
        said = without_operators_words(_without_drivers_words(said))
        said = without_other_machines(said, self.names.machines, other=A_MACHINE)
        said = without_other_projects(said, self.project, other=A_PROJECT)
        return _NAMED.sub(self._put, said if self.sees_hosts else _ADDRESS.sub(AN_ADDRESS, said))

    def _put(self, found: re.Match[str]) -> str:
        """Return what is shown for a word: another one in place of all of it if a name is in it."""
        word, names = found["word"], self.names
        bare = word.rstrip(_SEPARATORS)
        if self._is_own(word) or self._is_own(bare):
            return found[0]
        rest = word.removeprefix(bare)
        candidates = {candidate.lower() for candidate in _candidates(word)}
        if candidates & names.hosts and not self.sees_hosts:
            return f"{A_HOST}{rest}"
        if candidates & names.others and not self.sees_hosts:
            return f"{OPERATOR}{rest}"
        if bare in names.other_groups and (found["quote"] or _LIKE_A_NAME.match(bare)):
            return f"{A_GROUP}{rest}"
        if bare in names.other_projects and (found["quote"] or _LIKE_A_NAME.match(bare)):
            return f"{A_PROJECT}{rest}"
        # Machines often have the names of common things: only what is marked as a name, or looks like one.
        if any(found["quote"] or _LIKE_A_NAME.match(each) for each in candidates & names.strangers):
            return f"{A_MACHINE}{rest}"
        return found[0]

    def _is_own(self, word: str) -> bool:
        names = self.names
        own = (names.machines, names.people, names.groups, names.events)
        return word == self.project or any(word in each for each in own)

    def _order(self, order: Order) -> Order:
        own = order.project == self.project
        order = order if own else self._share(order)
        said_by_own = order.by in self.names.people
        order = replace(
            order,
            why=self.text(order.why),
            waiting=tuple(map(self._waiting, order.waiting)),
            stages=tuple(_with_steps(stage, map(self._step, stage.steps)) for stage in order.stages),
            host_steps=tuple(map(self._host_step, order.host_steps)) if self.sees_hosts else (),
            driver=_shown_driver(order.driver),
            by=self.person(order.by),
            reason=order.reason if said_by_own else self.text(order.reason),
            terms=self._terms(order.terms, said_by_own=said_by_own),
        )
        return order if self.sees_hosts else replace(order, host=None)

    def _host_step(self, step: HostStep) -> HostStep:
        return replace(step, why=self.text(step.why), driver=_shown_driver(step.driver))

    def _waiting(self, waiting: Waiting) -> Waiting:
        shown = _without_report(waiting)
        return replace(shown, what=self.text(shown.what), reason=self.text(shown.reason))

    def _terms(self, terms: OrderTerms, *, said_by_own: bool) -> OrderTerms:
        texts = {} if said_by_own else _texts(terms)
        shown: dict[str, Any] = {name: self.text(said) for name, said in texts.items()}
        shown |= {"abandoned_by": self.person(terms.abandoned_by)}
        if terms.host_driver is not None:
            shown["host_driver"] = _shown_driver(terms.host_driver)
        if not self.sees_hosts:
            shown |= {"homes": (), "to": None}
        return replace(terms, **shown)

    def _share(self, order: Order) -> Order:
        """Return what of a host's order concerns the project; its stages keep their places."""
        stages = tuple(
            _with_steps(stage, (step for step in stage.steps if step.group in self.names.groups))
            for stage in order.stages
        )
        reached = {FLEET_REACH, f"host {order.host}", f"project {self.project}"}  # by holds
        own = {step.name for stage in stages for step in stage.steps} | self.names.events | reached
        waiting = (
            each if each.what in own or each.group in self.names.groups else OTHER_PROJECTS_REASON
            for each in order.waiting
        )
        return replace(
            order,
            stages=stages,
            waiting=tuple(dict.fromkeys(waiting)),
            terms=replace(order.terms, rollout=None),
        )

    def _step(self, step: Step) -> Step:
        refused = tuple(replace(each, why=self.text(each.why)) for each in step.refused)
        shown = replace(step, refused=refused, why=self.text(step.why))
        return shown if self.sees_hosts else replace(shown, target=None, refused=(), failed_on=(), mark="")

    def _event(self, event: Event) -> Event:
        return replace(
            event,
            description=self.text(event.description),
            why=self.text(event.why),
            approvals=tuple(map(self._approval, event.approvals)),
            postponed=event.postponed and replace(event.postponed, reason=self.text(event.postponed.reason)),
        )

    def _approval(self, approval: Approval) -> Approval:
        person = approval.kind is ApprovedBy.PERSON
        return replace(approval, by=self.person(approval.by)) if person else approval

    def _record(self, record: Record) -> Record:
        # A stage is deferred as a whole, also by the guest of somebody else.
        if record.kind == Kind.EVENT_DEFERRED and record.by not in self.names.machines:
            record = replace(record, by=ANOTHER_GUEST)
        shown = replace(record, reason=self._reason(record))
        return shown if self.sees_hosts else replace(shown, host=None, by=self._author(record))

    def _author(self, record: Record) -> str:
        by_guest = record.kind == Kind.EVENT_DEFERRED or (
            record.kind == Kind.EVENT_APPROVED and not record.reason.startswith(ApprovedBy.PERSON)
        )
        return record.by if by_guest else self.person(record.by)

    def _reason(self, record: Record) -> str:
        said_by_own = record.kind in _SAID and record.by in self.names.people
        return record.reason if said_by_own or record.kind in _OF_WEBHOOKS else self.text(record.reason)


def _shown_driver(driver: str) -> str:
    return driver if driver in (SIMULATED, A_DRIVER) else A_DRIVER


def _texts(terms: OrderTerms) -> dict[str, str]:
    """Return all texts of the terms, by their names: also of terms that come later."""
    values = {each.name: getattr(terms, each.name) for each in fields(terms)}
    return {name: value for name, value in values.items() if type(value) is str}  # and no enum


def _without_report(waiting: Waiting) -> Waiting:
    """Return what waits for a report without the way to give it, which only operators have."""
    return replace(waiting, reason=DONE_OUTSIDE) if waiting.outside else waiting


def _with_steps(stage: Stage, steps: Iterable[Step]) -> Stage:
    return replace(stage, steps=tuple(steps))


def _candidates(word: str) -> Iterator[str]:
    """Give what may be a name in a word: all of it, and any of its parts between `.`, `-` and `_`."""
    yield word
    parts = [part.span() for part in _PART.finditer(word)]
    for index, (start, _) in enumerate(parts):
        for _, end in parts[index:]:
            if end - start > _LONGEST_NAME:
                break
            yield word[start:end]


def _words_of(value: object) -> Iterator[str]:
    match value:
        case str():
            yield from words_in(value)
        case Order():
            texts = (value.by, value.reason, value.why, *_texts(value.terms).values())
            texts += tuple(step.why for step in value.host_steps)
            texts += tuple(each.why for step in value.steps for each in step.refused)
            yield from chain.from_iterable(map(words_in, texts))
            for each in value.waiting:
                yield from (each.what, *words_in(each.what), *words_in(each.reason))
                yield from [each.group] if each.group else []
            for step in value.steps:
                yield from (step.group, *words_in(step.why))
        case Event():
            postponed = value.postponed.reason if value.postponed is not None else ""
            yield from chain.from_iterable(map(words_in, (value.description, value.why, postponed)))
            yield from (approval.by for approval in value.approvals)
        case Record():
            yield from (value.by, *words_in(value.reason))
        case Webhook():
            yield value.by
        case _:  # machines and groups have no texts of others
            return
