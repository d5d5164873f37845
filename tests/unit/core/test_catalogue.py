"""The catalogue is complete: it has every action and every kind of work."""

from datetime import timedelta
from typing import get_args

import pytest

from forewarn.config import SimulatedTimes
from forewarn.core.basic_types import HINTS, Action, EventType, MaintenanceWord, Work
from forewarn.core.catalogue import ACTIONS, MAINTENANCE_WORK, ON_HOSTS, ON_MACHINES, WORKS
from forewarn.core.policy import Policy


def test_every_action_is_on_machines_or_on_hosts() -> None:
    assert {*ON_MACHINES} | {*ON_HOSTS} == {*Action} == {*ACTIONS}
    assert not {*ON_MACHINES} & {*ON_HOSTS}


def test_the_catalogue_has_every_kind_of_work_and_every_event_type() -> None:
    assert {*WORKS} == {*Work}
    assert {facts.event for facts in WORKS.values()} - {None} == {*EventType}


def test_only_recommendations_have_a_hint_type() -> None:
    assert {facts.event for facts in WORKS.values() if facts.hint} == HINTS


def test_the_literal_of_maintenance_matches_the_catalogue() -> None:
    assert set(get_args(MaintenanceWord)) == {*MAINTENANCE_WORK}


def test_every_order_on_a_machine_has_a_help_text() -> None:
    assert all(facts.about and facts.work for facts in ON_MACHINES.values())


@pytest.mark.parametrize("type_", EventType)
def test_every_event_type_has_a_minimum_notice(type_: EventType) -> None:
    assert Policy().notice(type_) > timedelta()


@pytest.mark.parametrize(
    "action", [action for action, facts in ACTIONS.items() if facts.work and not WORKS[facts.work].hint]
)
def test_the_simulated_driver_knows_how_long_each_action_takes(action: Action) -> None:
    assert SimulatedTimes().of(action) >= timedelta()
