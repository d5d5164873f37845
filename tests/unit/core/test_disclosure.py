"""Redaction of texts, records and people for a project."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_type_hints

import pytest

from forewarn.core.basic_types import (
    HOOK,
    ApprovedBy,
    GroupName,
    HostName,
    HostTask,
    Kind,
    ProjectName,
    ServiceMode,
)
from forewarn.core.disclosure import (
    DONE_OUTSIDE,
    OTHER_PROJECTS_REASON,
    TOLD_OPERATORS,
    Disclosure,
    Names,
    candidate_words,
    mark_driver_text,
    words,
)
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Approval, Event, Postponement
from forewarn.core.model.order import AttemptId, HostStep, Order, OrderTerms, RefusedHost, Stage, Step
from forewarn.core.model.record import Record
from forewarn.core.orders import reports
from forewarn.core.redaction import (
    NOT_FOR_PROJECTS,
    driver_named,
    machine_names,
    mark_operator_text,
    project_name,
    unmarked,
)
from forewarn.core.webhook_rules import Webhook, WebhookId
from tests.helpers.service.harness import START
from tests.unit.slices import MINUTE, Fleet, machine

NAMES = Names(
    hosts=frozenset({"kvm-1", "kvm-2", "web-0"}),
    others=frozenset({"bob"}),
    people=frozenset({"anna"}),
    machines=frozenset({"web-0"}),
    strangers=frozenset({"db-3", "failed", "7"}),
    other_groups=frozenset({"x-web"}),
    other_projects=frozenset({"x"}),
    groups=frozenset({"bob-web"}),
)
HIDDEN = Disclosure(project=ProjectName("a"), names=NAMES)
LIBVIRT = driver_named("libvirt")
SEEN = Disclosure(project=ProjectName("a"), names=NAMES, sees_hosts=True)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("host kvm-1 failed", "a host failed"),
        ("kvm-1 to kvm-2", "a host to a host"),
        ("moved to kvm-2 by bob", "moved to a host by operator"),
        ('machine "web-0" is on host "kvm-1", which', 'machine "web-0" is on a host, which'),
        ("held by bob: see kvm-1.", "held by operator: see a host."),
        ("cannot reach qemu+ssh://root@10.1.2.3/system now", "cannot reach an address now"),
        ("see https://status.example.org/7", "see https://status.example.org/7"),
        ("KVM-1 burns", "a host burns"),
        ("its kvm-1-bmc is dead", "its a host is dead"),
        ("see bmc-kvm-1, Host Kvm-2.", "see a host, a host."),
        ("rack.kvm-1.lan: no route", "a host: no route"),
        ("ask BOB or bob_laptop", "ask operator or operator"),
        ("web-0, web-0.", "web-0, web-0."),
        ("group bob-web waits", "group bob-web waits"),
        ("moved DB-3 and db-3-disk first", "moved another machine and another machine first"),
        ("in 7 minutes", "in 7 minutes"),
        ("restarted by anna", "restarted by anna"),
        ('no sound host can take "db-3"', "no sound host can take another machine"),
        ("the host failed", "the host failed"),
        ("kvm-10 is another", "kvm-10 is another"),
        ("", ""),
    ],
)
def test_names_are_redacted_in_texts(said: str, shown: str) -> None:
    assert HIDDEN.text(said) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("moved to kvm-2 by bob, see KVM-1", "moved to kvm-2 by bob, see KVM-1"),
        ("cannot reach qemu+ssh://root@10.1.2.3/system", "cannot reach qemu+ssh://root@10.1.2.3/system"),
        ("moved DB-3 and db-3-disk first", "moved another machine and another machine first"),
        ('after "failed" of group x-web', "after another machine of group another group"),
    ],
)
def test_a_project_that_sees_hosts_and_operators_reads_no_names_of_other_projects(
    said: str, shown: str
) -> None:
    assert SEEN.text(said) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("waits for group x-web", "waits for group another group"),
        ('waits for "x"', "waits for another project"),
        ("x marks a spot", "x marks a spot"),
        ("bob-web", "bob-web"),
    ],
)
def test_names_of_other_projects_and_their_groups_are_redacted(said: str, shown: str) -> None:
    assert HIDDEN.text(said) == shown


@pytest.mark.parametrize("told", [HIDDEN, SEEN])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (mark_operator_text("new disks in kvm-1"), NOT_FOR_PROJECTS),
        (f"held by bob: {mark_operator_text('see db-3')}; since", f"held by bob: {NOT_FOR_PROJECTS}; since"),
        (
            mark_operator_text("one") + ", " + mark_operator_text("two"),
            f"{NOT_FOR_PROJECTS}, {NOT_FOR_PROJECTS}",
        ),
        (mark_operator_text("cut off")[:-1], NOT_FOR_PROJECTS),
        (mark_operator_text("it \u2069 ends here"), NOT_FOR_PROJECTS),
        (mark_operator_text(""), ""),
    ],
)
def test_a_project_reads_a_placeholder_for_an_operators_text(told: Disclosure, said: str, shown: str) -> None:
    assert told.text(said) == (shown if told.sees_hosts else shown.replace("bob", "operator"))


@pytest.mark.parametrize("name", ["payroll", "failed", "kvm-77", "was-removed"])
def test_a_reason_shows_a_project_only_its_own_machines(name: str) -> None:
    said = f"waits for its turn, after {machine_names(['web-0', name])}; expected soon"
    assert HIDDEN.text(said) == "waits for its turn, after web-0, another machine; expected soon"
    assert SEEN.text(said) == HIDDEN.text(said)
    assert unmarked(said) == f"waits for its turn, after web-0, {name}; expected soon"


@pytest.mark.parametrize("told", [HIDDEN, SEEN])
def test_a_reason_shows_a_project_only_its_own_name(told: Disclosure) -> None:
    own, other = project_name("a"), project_name("failed")
    assert (
        told.text(f"projects {other} and {own} have no window")
        == "projects another project and a have no window"
    )
    assert told.text(f"the window of project {other}") == "the window of another project"
    assert told.text(f"the window of project {own}") == "the window of project a"
    assert unmarked(f"projects {other} and {own}") == "projects failed and a"


def test_a_truncated_name_is_redacted() -> None:
    assert HIDDEN.text(machine_names(["payroll"])[:-3]) == "another machine"


def test_a_waiting_reason_names_no_machine_of_another_project() -> None:
    fleet = Fleet(machine("payroll"), machine("web-0"), hosts=["host-9"])
    fleet.draft.put_host(replace(fleet.draft.hosts[HostName("host-1")], at_once=1))
    order = fleet.service()
    for event in fleet.events():
        fleet.approve(event, by=event.resources[0].name)
    (reason,) = (each.reason for each in fleet.draft.orders[order.id].waiting if "turn" in each.reason)
    assert "after payroll" in unmarked(reason)
    assert HIDDEN.text(reason).startswith("waits for its turn, after another machine; ")


def test_operators_read_what_they_wrote_without_the_marks() -> None:
    assert unmarked(f"held: {mark_operator_text('see db-3')}") == "held: see db-3"
    assert unmarked("as it is") == "as it is"


def test_enums_in_the_terms_of_an_order_stay_enums() -> None:
    order = Fleet(machine("web-0")).maintain()
    terms = replace(order.terms, mode=ServiceMode.IN_PLACE)
    assert HIDDEN.shown(replace(order, terms=terms)).terms.mode is ServiceMode.IN_PLACE


def test_a_project_reads_no_drivers_names() -> None:
    fleet = Fleet(machine("web-0"))
    order = replace(fleet.maintain(), driver="libvirt")
    order = replace(order, terms=replace(order.terms, host_driver="ipmi"))
    step = HostStep(task=HostTask.WORK, driver="ipmi")
    shown = SEEN.shown(replace(order, host_steps=(step,)))
    assert (shown.driver, shown.terms.host_driver, shown.host_steps[0].driver) == ("platform",) * 3
    assert HIDDEN.shown(replace(order, driver="simulated")).driver == "simulated"


def test_a_project_does_not_see_the_driver_that_imported_its_machines_and_groups() -> None:
    assert SEEN.shown(replace(machine("web-0"), source="libvirt")).source == "platform"
    own = Fleet(machine("web-0", group="web")).draft.groups[GroupName("web")]
    assert HIDDEN.shown(own) == own
    assert HIDDEN.shown(replace(own, source="libvirt")).source == "platform"


@pytest.mark.parametrize("told", [HIDDEN, SEEN])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"failed: {mark_driver_text('root@n7: denied')}", f"failed: {TOLD_OPERATORS}"),
        (f"failed: {mark_driver_text('root@n7: denied', HOOK)}", f"failed: {TOLD_OPERATORS}"),
        (f"reboot: {mark_driver_text(mark_driver_text('n7'))}", f"reboot: {TOLD_OPERATORS}"),
        (f"unknown: {LIBVIRT} broke: no route to n7\nat line 3", "unknown: its driver broke"),
        (f"unknown: {LIBVIRT} cannot be used: no module", "unknown: its driver cannot be used"),
        (f"{LIBVIRT} has not answered within 30 s", "its driver has not answered within 30 s"),
        (f"{driver_named('my-own')} is not installed", "its driver is not installed"),
        (f"2 calls of {LIBVIRT} hang", "2 calls of its driver hang"),
        (f"{LIBVIRT[:-1]}", "its driver"),
        (f"order X is carried out by {LIBVIRT}: wait", "order X is carried out by its driver: wait"),
        ("a driver takes its time", "a driver takes its time"),
    ],
)
def test_a_project_reads_a_placeholder_for_a_drivers_text(told: Disclosure, said: str, shown: str) -> None:
    assert told.text(said) == shown
    assert told.shown(record(by="anna", reason=said)).reason == shown


@pytest.mark.parametrize("told", [HIDDEN, SEEN])
def test_no_text_of_an_order_or_event_shows_a_driver_text_to_a_project(told: Disclosure) -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.pass_(15 * MINUTE)
    (step,) = fleet.draft.orders[order.id].running
    attempt = AttemptId(order.id, step.machine, step.attempt)
    reports.step_failed(fleet.draft, attempt, why=mark_driver_text("qemu+ssh://n7 refused"))
    failed = fleet.advance(order.id)
    refused = (RefusedHost(host=HostName("kvm-2"), why=mark_driver_text("n7")),)
    stages = tuple(
        replace(stage, steps=tuple(replace(each, refused=refused) for each in stage.steps))
        for stage in failed.stages
    )
    (event,) = fleet.events()
    closed = replace(event, why=failed.waiting[0].reason)
    assert "n7" in repr(failed)
    assert "n7" not in repr(told.shown(replace(failed, stages=stages, why=failed.waiting[0].reason)))
    assert "n7" not in repr(told.shown(closed))


def test_a_projects_own_name_is_never_redacted() -> None:
    told = Disclosure(project=ProjectName("bob-a"), names=NAMES)
    assert told.text("project bob-a, not bob-b") == "project bob-a, not operator"


def test_every_name_is_among_the_candidate_words() -> None:
    assert {"kvm-1", "kvm-2", "bob"} <= set(candidate_words('"kvm-1": to kvm-2.example, by bob.'))
    assert {"kvm-1-bmc", "kvm-1", "kvm", "1-bmc"} <= set(candidate_words("kvm-1-bmc"))
    assert {"bob", "kvm-1"} <= words([record(by="bob", reason="host kvm-1 failed"), "text"])


def test_candidates_within_a_word_are_no_longer_than_names() -> None:
    found = set(candidate_words(f"kvm-1.{'x' * 64}"))
    assert {"kvm-1", "x" * 64} <= found
    assert f"1.{'x' * 64}" not in found


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("anna", "anna"),
        ("bob", "operator"),
        ("unknown-user", "operator"),
        ("", ""),
        ("forewarn", "forewarn"),
        ("web-0", "operator"),
    ],
)
def test_only_a_projects_own_people_are_named(name: str, shown: str) -> None:
    assert HIDDEN.person(name) == shown
    assert SEEN.person(name) == name


def record(kind: Kind = Kind.EVENT_SCHEDULED, *, by: str, reason: str = "") -> Record:
    return Record(number=1, at=START, kind=kind, host=HostName("kvm-1"), by=by, reason=reason)


@pytest.mark.parametrize(
    ("kind", "by", "reason", "shown"),
    [
        (Kind.EVENT_APPROVED, "web-9", "guest 10.0.0.1", ("web-9", "guest 10.0.0.1")),
        (Kind.EVENT_APPROVED, "policy", "policy", ("policy", "policy")),
        (Kind.EVENT_APPROVED, "bob", "person", ("operator", "person")),
        (Kind.EVENT_DEFERRED, "web-0", "until", ("web-0", "until")),
        (Kind.EVENT_DEFERRED, "db-3", "until", ("another project's guest", "until")),
        (Kind.ORDER_PLACED, "anna", "restart: kvm-1", ("anna", "restart: kvm-1")),
        (Kind.ORDER_PLACED, "bob", "evict: kvm-1", ("operator", "evict: a host")),
        (Kind.STEP_BEGUN, "anna", "redeploy to kvm-1", ("anna", "redeploy to a host")),
        (Kind.STEP_FAILED, "forewarn", "no report of kvm-1-bmc", ("forewarn", "no report of a host")),
        (Kind.WEBHOOK_FAILING, "", "webhook X to kvm-1", ("", "webhook X to kvm-1")),
    ],
)
def test_records_keep_texts_of_the_projects_own_people_and_guests(
    kind: Kind, by: str, reason: str, shown: tuple[str, str]
) -> None:
    seen = HIDDEN.shown(record(kind, by=by, reason=reason))
    assert (seen.by, seen.reason) == shown
    assert seen.host is None


# Objects that a project sees in part


def test_a_machine_is_shown_without_its_hosts() -> None:
    mine = machine("web-0", "kvm-1", bound_for=HostName("kvm-2"))
    seen = HIDDEN.shown(mine)
    assert (seen.name, seen.host, seen.bound_for) == ("web-0", None, None)
    assert SEEN.shown(mine) == mine
    assert words([mine]) == frozenset()


def test_a_webhook_is_shown_without_the_operator_who_added_it() -> None:
    webhook = Webhook(
        id=WebhookId("W"),
        number=1,
        url="https://a.example",
        project=ProjectName("a"),
        kinds=frozenset(),
        secret="",
        by="bob",
        created_at=START,
        delivered=1,
    )
    assert words([webhook]) == {"bob"}
    assert HIDDEN.shown(webhook) == replace(webhook, by="operator")
    assert SEEN.shown(webhook) == webhook


def test_a_project_sees_its_own_machines_and_reasons_in_a_hosts_order() -> None:
    fleet = Fleet(machine("web-0", "kvm-1", group="bob-web"), machine("db-3", "kvm-1", group="db"))
    order = fleet.maintain("kvm-1", rollout="R")
    waits = (
        Waiting(what="web-0", reason="waits for kvm-2"),
        Waiting(what="db-3", reason="is not ready"),
        Waiting(what="db", reason="update domain 1 waits for domain 0", group=GroupName("db")),
        Waiting(what="bob-web", reason="update domain 1 waits for domain 0", group=GroupName("bob-web")),
        Waiting(what="the whole fleet", reason="held by bob: audit"),
        Waiting(what="web-0", reason="POST /v1/orders/O/complete", outside=True),
    )
    seen = HIDDEN.shown(replace(order, waiting=waits))
    assert [step.name for step in seen.steps] == ["web-0"]
    assert (seen.host, seen.terms.rollout) == (None, None)
    # One placeholder stands for all reasons of other projects.
    assert [each.reason for each in seen.waiting] == [
        "waits for a host",
        OTHER_PROJECTS_REASON.reason,
        "update domain 1 waits for domain 0",
        "held by operator: audit",
        DONE_OUTSIDE,
    ]


# Texts that later versions add are redacted too

SAID = "of kvm-1 by bob"


def filled(kind: Any) -> Any:
    """Make a value whose texts all name a host and an operator, except its own names."""
    given: dict[str, Any] = {}
    for each, hint in get_type_hints(kind).items():
        if kind is Approval and each == "kind":
            given[each] = ApprovedBy.PERSON
        elif each in PLAIN:
            given[each] = PLAIN[each]
        elif hint is str or (hint == str | None):
            given[each] = SAID
        elif str(hint).startswith("tuple") and (inner := INNER.get((kind, each))) is not None:
            given[each] = (filled(inner),)
        elif hint is OrderTerms:
            given[each] = filled(OrderTerms)
        elif hint == Postponement | None:
            given[each] = filled(Postponement)
        else:
            given[each] = None
    return kind(**{each.name: given[each.name] for each in fields(kind)})


INNER: dict[tuple[Any, str], Any] = {
    (Order, "stages"): Stage,
    (Stage, "steps"): Step,
    (Order, "waiting"): Waiting,
    (Order, "host_steps"): HostStep,
    (Step, "refused"): RefusedHost,
    (Event, "approvals"): Approval,
}
PLAIN = {
    "project": ProjectName("a"),
    "group": GroupName("a-web"),
    "resources": (),
    "kind": "x",
    "rule": "any",
    "driver": "simulated",
    "host_driver": "simulated",
    "address": "10.0.0.1",
}


def texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case tuple():
            for each in value:
                yield from texts(each)
        case _ if is_dataclass(value):
            for each in fields(value):
                yield from texts(getattr(value, each.name))


@pytest.mark.parametrize("kind", [Order, Event, Record])
def test_every_text_of_a_value_is_redacted(kind: Any) -> None:
    value = filled(kind)
    assert {"kvm-1", "bob"} <= words([value])
    seen = list(texts(HIDDEN.shown(value)))
    assert [each for each in seen if "kvm-1" in each or "bob" in each] == []
    assert list(texts(SEEN.shown(value))) == list(texts(value))
