"""What a project's people are shown of a text, a record, a person."""

import pytest

from forewarn.core.disclosure import Disclosure, Names, words, words_in
from forewarn.core.model.record import Record
from forewarn.core.words import HostName, Kind, ProjectName
from tests.harness import START

NAMES = Names(
    hosts=frozenset({"kvm-1", "kvm-2", "web-0"}),
    others=frozenset({"bob"}),
    people=frozenset({"anna"}),
    machines=frozenset({"web-0"}),
    strangers=frozenset({"db-3", "failed"}),
)
HIDDEN = Disclosure(project=ProjectName("a"), names=NAMES)
SEEN = Disclosure(project=ProjectName("a"), names=NAMES, sees_hosts=True)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("host kvm-1 failed", "a host failed"),
        ("kvm-1 to kvm-2", "a host to a host"),
        ("moved to kvm-2 by bob", "moved to a host by operator"),
        ('machine "web-0" is on host "kvm-1", which', 'machine "web-0" is on a host, which'),
        ("held by bob: see kvm-1.", "held by operator: see a host."),
        ("qemu+ssh://kvm-1.example.org/system", "qemu+ssh://a host/system"),
        ("restarted by anna", "restarted by anna"),
        ('no sound host can take "db-3"', "no sound host can take another machine"),
        ("the host failed", "the host failed"),
        ("kvm-10 is another", "kvm-10 is another"),
        ("", ""),
    ],
)
def test_names_are_taken_out_of_texts(said: str, shown: str) -> None:
    assert HIDDEN.text(said) == shown
    assert SEEN.text(said) == said


def test_every_name_is_among_the_words_that_are_looked_up() -> None:
    assert {"kvm-1", "kvm-2", "bob"} <= set(words_in('"kvm-1": to kvm-2.example, by bob.'))
    assert {"bob", "kvm-1"} <= words([record(by="bob", reason="host kvm-1 failed"), "text"])


@pytest.mark.parametrize(
    ("name", "shown"),
    [("anna", "anna"), ("bob", "operator"), ("nobody-knows", "operator"), ("", ""), ("web-0", "operator")],
)
def test_only_ones_own_people_have_names(name: str, shown: str) -> None:
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
        (Kind.WEBHOOK_FAILING, "", "webhook X to kvm-1", ("", "webhook X to kvm-1")),
    ],
)
def test_records_keep_what_a_projects_own_people_and_guests_said(
    kind: Kind, by: str, reason: str, shown: tuple[str, str]
) -> None:
    seen = HIDDEN.shown(record(kind, by=by, reason=reason))
    assert (seen.by, seen.reason) == shown
    assert seen.host is None
