"""Holds: their records, their scope, and one hold for each scope."""

from dataclasses import replace

import pytest

from forewarn.core.admission import holds
from forewarn.core.basic_types import DEFAULT_PROJECT, HostName, Kind
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.model.constraints import Hold
from tests.unit.slices import MINUTE, NOON, Fleet, machine

EVERYWHERE = Hold(id="A", reason="audit", by="ops", at=NOON)
ON_PROJECT = replace(EVERYWHERE, id="B", project=DEFAULT_PROJECT)
ON_HOST = replace(EVERYWHERE, id="C", host=HostName("host-1"))


def fleet() -> Fleet:
    return Fleet(machine("web-0"))


@pytest.mark.parametrize(
    ("hold", "reach", "about"),
    [
        (EVERYWHERE, "the whole fleet", (None, None)),
        (ON_PROJECT, "project default", ("default", None)),
        (ON_HOST, "host host-1", (None, "host-1")),
    ],
)
def test_a_hold_is_listed_among_the_records_of_its_scope(
    hold: Hold, reach: str, about: tuple[str | None, str | None]
) -> None:
    made = fleet()
    holds.put(made.draft, hold)
    holds.release(made.draft, hold.id, by="ops")
    changes = made.draft.changes()
    assert [(record.kind, record.reason) for record in changes.records] == [
        (Kind.HOLD_SET, f"{reach}: audit"),
        (Kind.HOLD_RELEASED, f"{reach}: audit"),
    ]
    assert {(record.project, record.host) for record in changes.records} == {about}
    assert changes.wake_all


def test_a_hold_that_is_set_late_records_when_it_was_requested() -> None:
    made = fleet()
    made.turn(5 * MINUTE)
    holds.put(made.draft, EVERYWHERE, late=True)
    assert made.history(Kind.HOLD_SET) == ["the whole fleet: audit (since 2026-01-05T12:00:00Z)"]


def test_setting_a_hold_twice_changes_nothing() -> None:
    made = fleet()
    holds.put(made.draft, ON_HOST)
    before = made.draft.changes()
    assert holds.put(made.draft, replace(ON_HOST, reason="another")) == ON_HOST
    assert made.draft.changes() == before


def test_a_second_hold_with_the_same_scope_is_refused_and_names_the_first() -> None:
    made = fleet()
    holds.put(made.draft, ON_HOST)
    with pytest.raises(Conflict, match=r"host host-1 is held already by ops \(hold C\): audit"):
        holds.put(made.draft, replace(ON_HOST, id="D"))
    assert holds.put(made.draft, EVERYWHERE) == EVERYWHERE


def test_a_hold_can_be_released_once() -> None:
    made = fleet()
    holds.put(made.draft, ON_HOST)
    assert holds.release(made.draft, "c", by="ops") == ON_HOST
    with pytest.raises(NotFound, match="hold c does not exist"):
        holds.release(made.draft, "c", by="ops")


def test_a_dropped_hold_is_recorded_in_its_scope() -> None:
    made = fleet()
    holds.refuse(made.draft, ON_HOST, "host host-1 does not exist")
    (record,) = made.draft.changes().records
    assert (record.kind, record.host, record.by) == (Kind.HOLD_REFUSED, "host-1", "ops")
    assert record.reason == ("host host-1: audit; it was dropped: host host-1 does not exist")
