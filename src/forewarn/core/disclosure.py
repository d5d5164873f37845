"""Redaction for projects: a project sees no hosts, no operators' names, and nothing of other projects.

Texts of operators and drivers may name anything: people, addresses, users and paths of hypervisors, other
projects' machines. They are marked at the point of entry (`mark_operator_text`, `mark_driver_text`), and a
project reads a placeholder. The rest of a reason is forewarn's own text; names in it are found by their
syntax. Texts of a project's own people stay as they are: otherwise the answer would reveal which words are
names. With `sees-hosts`, a project also sees hosts and operators.
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
from forewarn.core.redaction import DRIVER, END, redact_names, redact_operator_texts
from forewarn.core.webhook_rules import NEVER_PUSHED, Webhook

V = TypeVar("V", Machine, Group, Order, Event, Record, Webhook)

# The placeholders for names.
OPERATOR = "operator"
A_HOST = "a host"
A_MACHINE = "another machine"
A_GROUP = "another group"
A_PROJECT = "another project"
# The placeholder for the name of a driver. `simulated` is shown, because projects may know it anyway.
A_DRIVER = "platform"
ANOTHER_GUEST = "another project's guest"
# The placeholder for a reason to wait that concerns other projects only.
OTHER_PROJECTS_REASON = Waiting(what="the platform", reason="waits for something outside your project")
# The placeholder for work outside forewarn.
DONE_OUTSIDE = "waits for the operators of the hosts to do the work"

# The placeholder for a driver's text.
TOLD_OPERATORS = "its driver has told the operators why"

_DRIVER_SAYS = "its driver says: "
_HOOK_SAYS = "its hook says: "
# A driver's text, from its mark to the end.
_DRIVERS_WORDS = re.compile(
    rf"(?:{_DRIVER_SAYS}|{_HOOK_SAYS}).*|{DRIVER}[^{END}]*{END} (?P<fault>broke|cannot be used): .*",
    re.DOTALL,
)
ITS_DRIVER = "its driver"
# Addresses of hypervisors. Web links are for people, so they stay.
_ADDRESS = re.compile(r"\b(?!https?:)[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
AN_ADDRESS = "an address"

_WORD = re.compile(r"[A-Za-z0-9._-]+")
_PART = re.compile(r"[A-Za-z0-9]+")
_SEPARATORS = "._-"
_LONGEST_NAME = 64
# The syntax of machine names rather than of words in a sentence: `db-3`, but neither `failed` nor `2026`.
_LIKE_A_NAME = re.compile(r"(?=.*[a-z])(?=.*[0-9._-])")
# A name in a sentence: `host kvm-1`, `"kvm-1"`.
_NAMED = re.compile(rf"(?:\b[Hh]ost )?(?P<quote>[\"']?)(?P<word>{_WORD.pattern})(?P=quote)")
# Records whose reason a project's own people wrote, if they are the author.
_SAID = frozenset({Kind.ORDER_PLACED, Kind.REHEARSAL_BEGUN, Kind.REHEARSAL_FAULTS, Kind.REHEARSAL_ENDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The words of some texts that are names.

    The first three sets are hidden names in lower case. The next two are hidden names as they are written.
    The others are names of the project's own.
    """

    hosts: frozenset[str] = frozenset()  # including removed ones
    others: frozenset[str] = frozenset()  # operators, and people of other projects
    strangers: frozenset[str] = frozenset()  # machines of other projects
    other_groups: frozenset[str] = frozenset()
    other_projects: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()
    machines: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()  # ids of listed events


def mark_driver_text(text: str, driver: str = "") -> str:
    """Mark a text of a driver or a hook, which operators alone read. Idempotent."""
    if text.startswith((_DRIVER_SAYS, _HOOK_SAYS)):
        return text
    return f"{_HOOK_SAYS if driver == HOOK else _DRIVER_SAYS}{text}"


def unmark_driver_text(text: str) -> str:
    """Remove the mark of a driver's text, for operators."""
    return text.removeprefix(_DRIVER_SAYS).removeprefix(_HOOK_SAYS)


def _without_drivers_words(said: str) -> str:
    return _DRIVERS_WORDS.sub(
        lambda found: f"{ITS_DRIVER} {found['fault']}" if found["fault"] else TOLD_OPERATORS, said
    )


def words(values: Iterable[object]) -> frozenset[str]:
    """Return all words in the texts of some values that may be names."""
    return frozenset(chain.from_iterable(map(_words_of, values)))


def candidate_words(text: str) -> Iterator[str]:
    """Yield the words of a text, and their parts, that may be names."""
    for word in _WORD.findall(text):
        yield from _candidates(word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """The view of one project."""

    project: ProjectName
    names: Names
    sees_hosts: bool = False

    def shown(self, value: V) -> V:
        """Return a value as the project's people may see it."""
        if isinstance(value, Machine | Group):
            value = replace(value, source=value.source if value.source == DECLARED else A_DRIVER)
            if isinstance(value, Machine) and not self.sees_hosts:
                return replace(value, host=None, last_host=None, bound_for=None)
            return value
        if isinstance(value, Order):
            return self._order(value)
        if isinstance(value, Event):
            return self._event(value)
        if isinstance(value, Record):
            return self._record(value)
        return replace(value, by=self.person(value.by))

    def person(self, name: str) -> str:
        """Return a person's name if the project may see it, otherwise a placeholder."""
        if self.sees_hosts or name in ("", FOREWARN) or name in self.names.people:
            return name
        return OPERATOR

    def text(self, said: str) -> str:
        """Return a text without hidden names, and without texts of drivers and operators."""
        said = redact_names(
            redact_operator_texts(_without_drivers_words(said)),
            machines=self.names.machines,
            project=self.project,
            other_machine=A_MACHINE,
            other_project=A_PROJECT,
            driver=ITS_DRIVER,
        )
        return _NAMED.sub(self._put, said if self.sees_hosts else _ADDRESS.sub(AN_ADDRESS, said))

    def _put(self, found: re.Match[str]) -> str:
        """Return the replacement of a word: a placeholder if the word contains a hidden name."""
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
        is_name = bool(found["quote"] or _LIKE_A_NAME.match(bare))
        if is_name and bare in names.other_groups:
            return f"{A_GROUP}{rest}"
        if is_name and bare in names.other_projects:
            return f"{A_PROJECT}{rest}"
        # Machines often share their names with common words, so a match must be quoted or look like a name.
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
        reason = DONE_OUTSIDE if waiting.outside else waiting.reason  # only operators can report the work
        return replace(waiting, what=self.text(waiting.what), reason=self.text(reason))

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
        """Return the project's part of a host's order; all stages stay, so that their indexes do too."""
        stages = tuple(
            _with_steps(stage, (step for step in stage.steps if step.group in self.names.groups))
            for stage in order.stages
        )
        reached = {FLEET_REACH, f"host {order.host}", f"project {self.project}"}  # the scopes of holds
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
        # A guest of another project may defer a stage, which defers this project's events too.
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
        return record.reason if said_by_own or record.kind in NEVER_PUSHED else self.text(record.reason)


def _shown_driver(driver: str) -> str:
    return driver if driver in (SIMULATED, A_DRIVER) else A_DRIVER


def _texts(terms: OrderTerms) -> dict[str, str]:
    """Return every text of the terms by its field name, including fields that later versions add."""
    values = {each.name: getattr(terms, each.name) for each in fields(terms)}
    return {name: value for name, value in values.items() if type(value) is str}  # no enums


def _with_steps(stage: Stage, steps: Iterable[Step]) -> Stage:
    return replace(stage, steps=tuple(steps))


def _candidates(word: str) -> Iterator[str]:
    """Yield the possible names in a word: all of it, and each run of parts between `.`, `-` and `_`."""
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
            yield from candidate_words(value)
        case Order():
            texts = (value.by, value.reason, value.why, *_texts(value.terms).values())
            texts += tuple(step.why for step in value.host_steps)
            texts += tuple(each.why for step in value.steps for each in step.refused)
            yield from chain.from_iterable(map(candidate_words, texts))
            for each in value.waiting:
                yield from (each.what, *candidate_words(each.what), *candidate_words(each.reason))
                yield from [each.group] if each.group else []
            for step in value.steps:
                yield from (step.group, *candidate_words(step.why))
        case Event():
            postponed = value.postponed.reason if value.postponed is not None else ""
            yield from chain.from_iterable(map(candidate_words, (value.description, value.why, postponed)))
            yield from (approval.by for approval in value.approvals)
        case Record():
            yield from (value.by, *candidate_words(value.reason))
        case Webhook():
            yield value.by
        case _:  # machines and groups have no free text
            return
