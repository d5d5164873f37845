"""The notice of a machine is judged once: when its event ends, or when the machine leaves it."""

from dataclasses import replace

from forewarn.core.basic_types import Action, EventStatus, Kind
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.record import PromiseCounts
from forewarn.core.orders import departures, interventions
from tests.unit.slices import MINUTE, NOON, SECOND, Fleet, machine

NOTICES = (Kind.NOTICE_LATE, Kind.NOTICE_NEVER)


def started(*names: str) -> Fleet:
    """Start maintenance that was announced to web at noon."""
    fleet = Fleet(*map(machine, names or ("web-0", "web-1", "web-2")))
    fleet.maintain()
    fleet.pass_(15 * MINUTE)
    return fleet


def end(fleet: Fleet) -> None:
    """Advance the clock past the end of all work, and end it."""
    fleet.turn(2 * MINUTE)
    for order in list(fleet.draft.orders):
        fleet.finish(order)


def counted(fleet: Fleet) -> PromiseCounts:
    """Return the counts that this draft adds."""
    found = fleet.draft.changes().promises
    return PromiseCounts(
        **{name: sum(getattr(each, name) for each in found) for name in ("kept", "late", "never")}
    )


def test_a_start_does_not_judge_the_notice() -> None:
    fleet = started()
    assert counted(fleet) == PromiseCounts()
    assert fleet.history(*NOTICES) == []


def test_the_end_of_an_event_judges_its_notice() -> None:
    fleet = Fleet(*map(machine, ("web-0", "web-1", "web-2")))
    fleet.maintain()
    fleet.send("web-0")
    fleet.turn(5 * MINUTE)
    fleet.send("web-1")
    fleet.pass_(10 * MINUTE)
    end(fleet)
    assert counted(fleet) == PromiseCounts(kept=2, never=1)
    assert fleet.history(*NOTICES) == ["promised 15 m: web-2"]
    assert fleet.draft.changes().tallies == {Kind.NOTICE_NEVER: 1}
    assert all(event.judged for event in fleet.draft.events.values())


def test_a_machine_that_could_not_see_its_event_in_time_counts_as_late() -> None:
    fleet = Fleet(*map(machine, ("web-0", "web-1", "web-2")))
    fleet.maintain()
    fleet.send("web-0")
    fleet.turn(5 * MINUTE)
    fleet.absences = (Absence(since=NOON + SECOND, until=NOON + 5 * MINUTE),)
    fleet.send("web-1")
    fleet.pass_(10 * MINUTE)
    end(fleet)
    assert counted(fleet) == PromiseCounts(kept=1, late=2)
    assert fleet.history(*NOTICES) == ["promised 15 m: web-1 got 10 m, web-2 got 0 s"]
    assert fleet.draft.changes().tallies == {Kind.NOTICE_LATE: 2}
    (event,) = fleet.draft.events.values()
    assert [resource.late for resource in event.resources] == [False, True, True]


def test_a_delivery_reported_after_the_start_counts_with_its_own_time() -> None:
    fleet = started("web-0", "web-1")
    fleet.absences = (Absence(since=NOON + SECOND, until=NOON + 5 * MINUTE),)
    fleet.send("web-0", at=NOON + SECOND)
    fleet.send("web-1")
    end(fleet)
    assert counted(fleet) == PromiseCounts(kept=1, late=1)
    fleet.turn(SECOND)
    assert fleet.history(*NOTICES) == ["promised 15 m: web-1 got 0 s"]


def test_a_machine_that_leaves_a_started_event_is_judged_as_it_leaves() -> None:
    fleet = started("web-0", "web-1")
    fleet.turn(SECOND)
    departures.remove_from_fleet(fleet.draft, fleet.machine("web-1"), why="it burnt down")
    assert counted(fleet) == PromiseCounts(never=1)
    assert fleet.history(*NOTICES) == ["promised 15 m: web-1"]
    end(fleet)
    assert counted(fleet) == PromiseCounts(never=1)
    assert fleet.history(*NOTICES) == ["promised 15 m: web-1", "promised 15 m: web-0"]


def test_a_machine_that_leaves_before_the_start_is_not_judged() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    fleet.maintain()
    fleet.turn(SECOND)
    departures.remove_from_fleet(fleet.draft, fleet.machine("web-1"), why="it burnt down")
    assert counted(fleet) == PromiseCounts()


def test_a_judged_event_is_not_judged_again() -> None:
    fleet = started("web-0")
    (event,) = fleet.events()
    fleet.draft.put_event(replace(event, judged=True))
    end(fleet)
    assert (counted(fleet), fleet.events()) == (PromiseCounts(), ())


def test_work_that_was_begun_and_abandoned_is_judged() -> None:
    fleet = started("web-0")
    (order,) = fleet.draft.orders
    fleet.fail(order)
    interventions.abandon(fleet.draft, order, by="test")
    assert counted(fleet) == PromiseCounts(never=1)


def test_cancelled_events_and_events_of_failures_are_not_judged() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    interventions.cancel(fleet.draft, fleet.order("web-0").id, by="test")
    fleet.turn(SECOND)
    fleet.maintain(action=Action.FAIL)
    assert {event.status for event in fleet.events()} == {EventStatus.STARTED}
    end(fleet)
    assert counted(fleet) == PromiseCounts()
    assert fleet.history(*NOTICES) == []
