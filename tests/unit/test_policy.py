"""The promises as data: what cannot be promised, and what has nothing to announce."""

from datetime import timedelta

import pytest

from forewarn.core.errors import Invalid
from forewarn.core.policy import Policy, event_type, work_of
from forewarn.core.words import Action, Work
from tests.unit.slices import Fleet, machine


@pytest.mark.parametrize("name", ["stale_after", "save_activity_every", "external_silence"])
def test_some_times_are_longer_than_nothing(name: str) -> None:
    with pytest.raises(Invalid, match=f"{name.replace('_', '-')}: expected more than no time"):
        Policy(**{name: timedelta()})
    assert getattr(Policy(**{name: timedelta(seconds=1)}), name) == timedelta(seconds=1)


def test_a_start_is_announced_as_no_type_of_event() -> None:
    with pytest.raises(ValueError, match="a start is never announced"):
        event_type(Work.START)


def test_an_order_that_only_changes_its_host_does_nothing_to_machines() -> None:
    order = Fleet(machine("web-0")).maintain(action=Action.CORDON)
    with pytest.raises(ValueError, match="a cordon order does nothing to machines"):
        work_of(order)
