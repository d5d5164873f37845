"""Which lists a record concerns."""

import pytest

from forewarn.core.basic_types import Kind
from forewarn.core.topics import TOPICS, Topic, topics_of


def test_each_kind_has_its_topics() -> None:
    assert TOPICS.keys() == set(Kind)


def test_each_topic_has_a_kind_that_concerns_it() -> None:
    assert set().union(*TOPICS.values()) == set(Topic)


@pytest.mark.parametrize(
    ("kind", "topic"),
    [
        (Kind.TOKEN_REVOKED, Topic.TOKENS),
        (Kind.WEBHOOK_FAILING, Topic.WEBHOOKS),
        (Kind.REHEARSAL_FAULTS, Topic.REHEARSALS),
    ],
)
def test_what_belongs_to_one_list_alone_concerns_no_other(kind: Kind, topic: Topic) -> None:
    assert topics_of(kind) == (topic,)


@pytest.mark.parametrize("kind", [Kind.HISTORY_PRUNED, Kind.IMPOSTOR_REFUSED])
def test_a_record_that_no_list_shows_concerns_none(kind: Kind) -> None:
    assert topics_of(kind) == ()


def test_the_first_poll_of_a_group_concerns_its_machines_which_show_that_they_listen() -> None:
    assert topics_of(Kind.GROUP_ENABLED) == (Topic.MACHINES, Topic.GROUPS)


def test_time_that_has_gone_by_at_once_concerns_all_that_waits_for_it() -> None:
    assert topics_of(Kind.CLOCK_ADVANCED) == (Topic.EVENTS, Topic.ORDERS, Topic.ROLLOUTS, Topic.CLOCK)


def test_a_kind_of_another_version_may_have_changed_everything() -> None:
    assert topics_of("moon-eclipsed") == tuple(Topic)


@pytest.mark.parametrize("kind", [Kind.EVENT_WITHDRAWN, Kind.ROLLOUT_ABORTED])
def test_places_that_are_no_longer_kept_for_machines_concern_these_and_their_hosts(kind: Kind) -> None:
    assert {Topic.MACHINES, Topic.HOSTS} <= {*topics_of(kind)}
