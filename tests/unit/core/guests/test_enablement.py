"""Silence: only time in which guests could be heard counts (rule 12)."""

from datetime import timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given

from forewarn.core.basic_types import GroupName, Kind
from forewarn.core.guests import enablement
from forewarn.core.guests.enablement import MOST_ABSENCES, SHORTEST_PRESENCE
from forewarn.core.model.clock_slew import Absence
from forewarn.core.policy import Policy
from tests.unit.slices import HOUR, MINUTE, NOON, SECOND, Fleet, machine

POLICY = Policy()
WEB = GroupName("web")
DAY = POLICY.idle_after + POLICY.save_activity_every


def away(begins: timedelta, ends: timedelta) -> Absence:
    """Make an absence; both times are counted from noon."""
    return Absence(since=NOON + begins, until=NOON + ends)


def test_the_first_poll_enables_a_group_and_the_next_changes_nothing() -> None:
    fleet = Fleet(machine("web-0"), silent=["web"])
    slow = Policy(enable_delay=2 * MINUTE)
    group = enablement.enable(fleet.draft, fleet.draft.groups[WEB], policy=slow)
    assert (group.enabled_at, group.ready_at) == (NOON, NOON + 2 * MINUTE)
    assert enablement.enable(fleet.draft, group, policy=slow) is group
    assert fleet.history(Kind.GROUP_ENABLED) == [""]


def test_the_next_poll_enables_a_disabled_group() -> None:
    fleet = Fleet(machine("web-0"))
    silent = enablement.disable(fleet.draft, fleet.draft.groups[WEB], policy=POLICY)
    assert (silent.enabled, silent.ready_at) == (False, None)
    assert fleet.history(Kind.GROUP_DISABLED) == ["no poll for 1 d"]
    assert enablement.enable(fleet.draft, silent, policy=POLICY).enabled


def test_without_absences_a_group_is_idle_after_a_day() -> None:
    assert enablement.idle_at(NOON, (), policy=POLICY) == NOON + DAY
    assert enablement.idle_cutoff(NOON + DAY, (), policy=POLICY) == NOON


@pytest.mark.parametrize(
    ("absences", "later"),
    [
        ([away(HOUR, 27 * HOUR)], 26 * HOUR),
        ([away(HOUR, 2 * HOUR), away(5 * HOUR, 7 * HOUR)], 3 * HOUR),
        ([away(-HOUR, HOUR)], HOUR),
        ([away(-2 * HOUR, -HOUR)], timedelta()),
        ([away(DAY, 3 * DAY)], timedelta()),
    ],
    ids=["long", "several", "begun before", "over before", "afterwards"],
)
def test_an_absence_does_not_count_as_idle_time(absences: list[Absence], later: timedelta) -> None:
    assert enablement.idle_at(NOON, absences, policy=POLICY) == NOON + DAY + later


def test_an_absence_moves_the_required_last_activity_back() -> None:
    absences = [away(HOUR, 3 * HOUR), away(5 * HOUR, 29 * HOUR)]
    assert enablement.idle_cutoff(NOON + DAY + 26 * HOUR, absences, policy=POLICY) == NOON
    long_ago = [away(-2 * HOUR, -HOUR)]
    assert enablement.idle_cutoff(NOON + DAY, long_ago, policy=POLICY) == NOON


spans = st.integers(1, 40 * 3600).map(lambda seconds: timedelta(seconds=seconds))


@st.composite
def stretches(draw: st.DrawFn) -> list[Absence]:
    """Draw consecutive absences that begin at noon or later."""
    moment, found = timedelta(), []
    for present, absent in draw(st.lists(st.tuples(spans, spans), max_size=5)):
        found.append(away(moment + present, moment + present + absent))
        moment += present + absent
    return found


@given(stretches(), spans, spans)
def test_a_group_becomes_idle_exactly_at_the_forecast_time(
    absences: list[Absence], active: timedelta, passed: timedelta
) -> None:
    last_active = NOON + active
    now = max([last_active, *(absence.until for absence in absences)]) + passed
    due = enablement.idle_at(last_active, absences, policy=POLICY)
    assert (due <= now) == (last_active <= enablement.idle_cutoff(now, absences, policy=POLICY))


def kept(absences: list[Absence]) -> tuple[Absence, ...]:
    found: tuple[Absence, ...] = ()
    for absence in absences:
        found = enablement.add_absence(found, absence, policy=POLICY)
    return found


@given(stretches())
def test_the_kept_absences_give_the_same_forecast_as_all(absences: list[Absence]) -> None:
    if not absences:
        return
    now, far_apart = (
        absences[-1].until,
        [
            absence
            for index, absence in enumerate(absences)
            if index == 0 or absence.since - absences[index - 1].until >= SHORTEST_PRESENCE
        ],
    )
    if far_apart == absences:
        assert enablement.idle_cutoff(now, kept(absences), policy=POLICY) == enablement.idle_cutoff(
            now, absences, policy=POLICY
        )


def test_absences_older_than_the_idle_time_are_dropped() -> None:
    assert kept([away(HOUR, 2 * HOUR), away(40 * HOUR, 41 * HOUR)]) == (away(40 * HOUR, 41 * HOUR),)


def test_brief_presences_merge_the_absences_around_them() -> None:
    flapping = [away(number * 2 * MINUTE, number * 2 * MINUTE + 90 * SECOND) for number in range(10)]
    assert kept(flapping) == (away(timedelta(), 18 * MINUTE + 90 * SECOND),)


def test_at_most_a_fixed_number_of_absences_is_kept() -> None:
    often = [away(number * 10 * MINUTE, number * 10 * MINUTE + 2 * MINUTE) for number in range(130)]
    found = kept(often)
    assert len(found) == MOST_ABSENCES
    now = often[-1].until
    assert enablement.idle_cutoff(now, found, policy=POLICY) <= enablement.idle_cutoff(
        now, often, policy=POLICY
    )


def test_brief_absences_are_not_merged_and_count_as_idle_time() -> None:
    brief = [away(number * MINUTE, number * MINUTE + 20 * SECOND) for number in range(3)]
    long = away(3 * MINUTE, 5 * MINUTE)
    found = kept([*brief, long, away(5 * MINUTE + SECOND, 5 * MINUTE + 4 * SECOND)])
    assert found == (*brief, long, away(5 * MINUTE + SECOND, 5 * MINUTE + 4 * SECOND))
    assert enablement.idle_at(NOON, found, policy=POLICY) == NOON + DAY + 2 * MINUTE
    assert enablement.idle_cutoff(NOON + DAY + 2 * MINUTE, found, policy=POLICY) == NOON


def test_only_the_latest_brief_absences_are_kept() -> None:
    often = [away(number * MINUTE, number * MINUTE + 20 * SECOND) for number in range(130)]
    assert kept(often) == tuple(often[-MOST_ABSENCES:])
