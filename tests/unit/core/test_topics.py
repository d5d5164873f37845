"""The lists that each record changes."""

import pytest

from forewarn.core.basic_types import Kind
from forewarn.core.topics import TOPICS, Topic, topics_of


def test_each_kind_has_its_topics() -> None:
    assert TOPICS.keys() == set(Kind)


def test_each_topic_has_a_kind() -> None:
    assert set().union(*TOPICS.values()) == set(Topic)


@pytest.mark.parametrize(
    ("kind", "topic"),
    [
        (Kind.TOKEN_REVOKED, Topic.TOKENS),
        (Kind.WEBHOOK_FAILING, Topic.WEBHOOKS),
        (Kind.REHEARSAL_FAULTS, Topic.REHEARSALS),
    ],
)
def test_records_of_one_list_have_one_topic(kind: Kind, topic: Topic) -> None:
    assert topics_of(kind) == (topic,)


@pytest.mark.parametrize("kind", [Kind.HISTORY_PRUNED, Kind.IMPOSTOR_REFUSED])
def test_records_that_no_list_shows_have_no_topic(kind: Kind) -> None:
    assert topics_of(kind) == ()


def test_the_first_poll_of_a_group_changes_its_machines_too() -> None:
    assert topics_of(Kind.GROUP_ENABLED) == (Topic.MACHINES, Topic.GROUPS)


def test_advancing_the_clock_changes_everything_that_waits() -> None:
    assert topics_of(Kind.CLOCK_ADVANCED) == (Topic.EVENTS, Topic.ORDERS, Topic.ROLLOUTS, Topic.CLOCK)


def test_an_unknown_kind_has_every_topic() -> None:
    assert topics_of("moon-eclipsed") == tuple(Topic)


@pytest.mark.parametrize("kind", [Kind.EVENT_WITHDRAWN, Kind.ROLLOUT_ABORTED])
def test_releasing_reserved_places_changes_machines_and_hosts(kind: Kind) -> None:
    assert {Topic.MACHINES, Topic.HOSTS} <= {*topics_of(kind)}
