"""Windows: when a project may be disturbed, even on days when the clocks change."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import given

from forewarn.core.admission.timing import (
    FOR_EVER,
    LEEWAY,
    LONGEST_DEADLINE,
    JointCalendar,
    Timing,
    check_deadline,
)
from forewarn.core.basic_types import ProjectName
from forewarn.core.errors import Invalid
from forewarn.core.model.clock_slew import Slew
from forewarn.core.model.project import ALWAYS, Calendar, Window
from forewarn.core.redaction import unmarked
from tests.helpers.service.refused import refused

QUARTER = timedelta(minutes=15)
HOUR = timedelta(hours=1)
MONDAY = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
EVERY_DAY = frozenset(range(7))

# Summer time of half an hour, a summer time with a pause, both hemispheres, offsets of 45 minutes.
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Chatham")


def window(start: str, hours: float, days: frozenset[int] = EVERY_DAY) -> Window:
    return Window(days=days, start=time.fromisoformat(start), length=timedelta(hours=hours))


def calendar(*windows: Window, zone: str = "UTC", blackout: tuple[str, ...] = ()) -> Calendar:
    days = frozenset(date.fromisoformat(day) for day in blackout)
    return Calendar(windows=windows, zone=ZoneInfo(zone), blackout=days)


def first_fit(calendars: list[Calendar], *, after: datetime, work: timedelta) -> datetime | None:
    fit = JointCalendar(calendars).fit(after, work)
    return None if fit is None else fit.opens


def is_open(known: Calendar, moment: datetime) -> bool:
    """Return whether a time is open by checking every window of the last week."""
    local = moment.astimezone(known.zone)
    if local.date() in known.blackout:
        return False
    for window_ in known.windows:
        for back in range(9):
            day = local.date() - timedelta(days=back)
            opens = datetime.combine(day, window_.start, tzinfo=known.zone).astimezone(UTC)
            if day.weekday() in window_.days and opens <= moment < opens + window_.length:
                return True
    return not known.windows


def fits(known: Calendar, start: datetime, work: timedelta) -> bool:
    quarters = work // QUARTER
    return all(is_open(known, start + place * QUARTER) for place in range(quarters))


def changes(zone: ZoneInfo) -> Iterator[datetime]:
    """Return every clock change of a zone in five years."""
    moment, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
    while moment < last:
        after = moment + HOUR
        if moment.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            yield after
        moment = after


@pytest.mark.parametrize("zone", ZONES)
def test_windows_keep_their_local_time_when_the_clocks_change(zone: str) -> None:
    moments = list(changes(ZoneInfo(zone)))
    assert len(moments) >= 10
    for moment in moments:
        for start in ("00:00", "01:30", "02:00", "02:30", "02:45", "03:00", "23:30"):
            for hours in (0.5, 4):
                known = calendar(window(start, hours), zone=zone)
                after = moment - timedelta(hours=26)
                work = timedelta(minutes=30)
                grid = (after + place * QUARTER for place in range(4 * 80))
                slow = next(each for each in grid if fits(known, each, work))
                assert first_fit([known], after=after, work=work) == slow


def test_a_window_keeps_its_length_on_a_day_with_23_hours() -> None:
    night = calendar(window("01:00", 3), zone="Europe/Berlin")
    [opening] = night.openings(datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 3, 29, 12, tzinfo=UTC))
    assert (opening.opens, opening.closes - opening.opens) == (
        datetime(2026, 3, 29, 0, 0, tzinfo=UTC),
        timedelta(hours=3),
    )


def test_a_skipped_local_time_is_one_hour_later() -> None:
    lost = calendar(window("02:30", 1), zone="Europe/Berlin")
    fit = first_fit([lost], after=datetime(2026, 3, 29, 0, 0, tzinfo=UTC), work=HOUR)
    assert fit == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def test_a_repeated_local_time_means_its_first_occurrence() -> None:
    twice = calendar(window("02:30", 0.5), zone="Europe/Berlin")
    fit = first_fit([twice], after=datetime(2026, 10, 25, 0, 0, tzinfo=UTC), work=QUARTER)
    assert fit == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    after = first_fit([twice], after=datetime(2026, 10, 25, 1, 0, tzinfo=UTC), work=QUARTER)
    assert after == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_work_must_end_before_the_window_closes() -> None:
    noon = calendar(window("11:00", 2))
    assert first_fit([noon], after=MONDAY, work=HOUR) == MONDAY
    assert first_fit([noon], after=MONDAY, work=HOUR + QUARTER) == MONDAY + timedelta(hours=23)
    assert first_fit([noon], after=MONDAY, work=3 * HOUR) is None


def test_adjacent_windows_are_one_window() -> None:
    both = calendar(window("11:00", 1), window("12:00", 1))
    assert first_fit([both], after=MONDAY - HOUR / 2, work=HOUR) == MONDAY - HOUR / 2


def test_a_blackout_day_closes_windows_that_began_the_day_before() -> None:
    night = calendar(window("22:00", 4), blackout=("2026-01-06",))
    assert first_fit([night], after=MONDAY, work=2 * HOUR) == MONDAY.replace(hour=22)
    assert first_fit([night], after=MONDAY, work=3 * HOUR) == datetime(2026, 1, 7, 22, tzinfo=UTC)


def test_without_windows_only_blackout_days_are_closed() -> None:
    quiet = calendar(zone="Asia/Tokyo", blackout=("2026-01-05", "2026-01-06"))
    assert first_fit([quiet], after=MONDAY, work=HOUR) == datetime(2026, 1, 6, 15, 0, tzinfo=UTC)
    assert first_fit([ALWAYS], after=MONDAY, work=HOUR) == MONDAY


def test_a_blackout_day_closes_no_other_day() -> None:
    past = calendar(blackout=("2026-01-04", "2028-01-01"))
    assert first_fit([past], after=MONDAY, work=HOUR) == MONDAY


def test_windows_of_several_projects_must_be_open_together() -> None:
    one, other = (
        calendar(window("10:00", 3)),
        calendar(window("07:30", 4, frozenset({2})), zone="America/New_York"),
    )
    assert first_fit([one, other], after=MONDAY, work=QUARTER) == datetime(2026, 1, 7, 12, 30, tzinfo=UTC)
    assert first_fit([one, calendar(window("14:00", 2))], after=MONDAY, work=QUARTER) is None


def test_work_may_start_until_it_no_longer_fits_into_the_window() -> None:
    noon = calendar(window("11:00", 3))
    for known, last in ((noon, MONDAY + HOUR), (ALWAYS, FOR_EVER), (calendar(window("00:00", 24)), FOR_EVER)):
        fit = JointCalendar([known]).fit(MONDAY, HOUR)
        assert fit is not None
        assert fit.closes == last


@given(
    known=st.deferred(lambda: calendars),
    offsets=st.lists(st.integers(0, 4 * 24 * 30), min_size=1, max_size=6),
)
def test_cached_openings_do_not_change_later_answers(known: Calendar, offsets: list[int]) -> None:
    joint = JointCalendar([known])
    for offset in offsets:
        after = MONDAY + offset * QUARTER
        assert joint.fit(after, HOUR) == JointCalendar([known]).fit(after, HOUR)


calendars = st.builds(
    lambda windows, zone, days: Calendar(
        windows=tuple(windows),
        zone=ZoneInfo(zone),
        blackout=frozenset(MONDAY.date() + timedelta(days=day) for day in days),
    ),
    st.lists(
        st.builds(
            lambda days, quarter, length: Window(
                days=days,
                start=time(quarter // 4, quarter % 4 * 15),
                length=length * QUARTER,
            ),
            st.frozensets(st.integers(0, 6), min_size=1),
            st.integers(0, 95),
            st.integers(1, 4 * 30),
        ),
        max_size=3,
    ),
    st.sampled_from(ZONES),
    st.sets(st.integers(0, 9), max_size=3),
)


@given(
    known=st.lists(calendars, min_size=1, max_size=2),
    offset=st.integers(0, 4 * 24 * 7),
    quarters=st.integers(1, 12),
)
def test_the_first_fit_is_the_earliest(known: list[Calendar], offset: int, quarters: int) -> None:
    after, work = MONDAY + offset * QUARTER, quarters * QUARTER
    fit = first_fit(known, after=after, work=work)
    grid = (after + place * QUARTER for place in range(4 * 24 * 10))
    slow = next((each for each in grid if all(fits(one, each, work) for one in known)), None)
    if slow is None:
        assert fit is None or fit >= after + timedelta(days=10)
    else:
        assert fit == slow


# Announced work


SLEW = Slew(at=MONDAY + 3 * HOUR, system=MONDAY)  # they meet at 18:00


@pytest.mark.parametrize(
    ("opens", "service"),
    [
        ("14:00", MONDAY + 4 * HOUR),  # not at once, although service time is later
        ("17:00", MONDAY + 5.5 * HOUR),
        ("20:00", MONDAY + 8 * HOUR),
    ],
)
def test_windows_follow_the_system_clock_while_service_time_is_ahead(opens: str, service: datetime) -> None:
    known = JointCalendar([calendar(window(opens, 4))], slew=SLEW)
    fit = known.fit(SLEW.at, QUARTER)
    assert fit is not None
    assert fit.opens == service
    bound = Timing(calendars={ProjectName("shop"): calendar(window(opens, 4))}, work=QUARTER, slew=SLEW)
    (waiting,) = bound.why_not_start("it", now=SLEW.at)
    assert waiting.reason.endswith(f"which opens 2026-01-05 {opens} (UTC)")
    assert waiting.until == service
    assert bound.start_at(SLEW.at) == service


def timing(*windows: Window, deadline: datetime | None = None) -> Timing:
    return Timing(
        notice=QUARTER,
        work=HOUR,
        calendars={ProjectName("shop"): calendar(*windows)},
        deadline=deadline,
    )


def test_work_is_announced_early_enough_to_start_with_the_window() -> None:
    assert timing(window("14:00", 2)).announce_at(MONDAY) == MONDAY + timedelta(hours=1, minutes=45)
    assert timing(window("11:00", 3)).announce_at(MONDAY) == MONDAY


def test_at_the_deadline_windows_no_longer_apply_but_full_notice_does() -> None:
    bound = timing(window("20:00", 2), deadline=MONDAY + HOUR)
    assert bound.announce_at(MONDAY) == MONDAY + HOUR
    later = MONDAY + 2 * HOUR
    assert bound.announce_at(later) == later
    assert bound.not_before(later) == later + QUARTER
    assert bound.why_not_start("host-1", now=later) == ()


def test_a_start_may_be_deferred_until_the_end_of_the_window_or_the_deadline() -> None:
    noon, deadline = window("11:00", 3), MONDAY + HOUR / 2
    assert timing(noon).latest(MONDAY, now=MONDAY) == MONDAY + HOUR - LEEWAY
    assert timing(noon).latest(MONDAY + 2 * HOUR, now=MONDAY) == MONDAY + 2 * HOUR
    assert timing(noon, deadline=deadline).latest(MONDAY, now=MONDAY) == deadline
    assert timing(noon, deadline=deadline).latest(deadline, now=deadline) == deadline
    assert timing().latest(MONDAY, now=MONDAY) is None


@pytest.mark.parametrize("ahead", [timedelta(), -HOUR, LONGEST_DEADLINE])
def test_a_deadline_must_lie_within_the_next_ten_years(ahead: timedelta) -> None:
    with pytest.raises(Invalid, match="deadline: expected a time in the next ten years, got 20"):
        check_deadline(MONDAY + ahead, now=MONDAY)
    check_deadline(MONDAY + HOUR, now=MONDAY)
    check_deadline(None, now=MONDAY)


def test_a_window_before_the_deadline_is_used() -> None:
    bound = timing(window("14:00", 2), deadline=MONDAY + timedelta(days=1))
    assert bound.announce_at(MONDAY) == MONDAY + timedelta(hours=1, minutes=45)


@pytest.mark.parametrize("late", [timedelta(), timedelta(milliseconds=5), timedelta(seconds=29)])
def test_work_that_just_fits_tolerates_a_late_tick(late: timedelta) -> None:
    bound = timing(window("14:00", 1 + 1 / 60))  # an hour of work, and a minute of leeway for two late ticks
    told = bound.announce_at(MONDAY)
    assert told is not None
    assert bound.why_not_announce("host-1", now=told + late) == ()
    start = bound.not_before(told + late)
    assert bound.why_not_start("host-1", now=start + late) == ()


def test_work_that_can_never_fit_is_refused_unless_it_has_a_deadline() -> None:
    bound = timing(window("14:00", 1))
    with refused(Invalid, match="host-1: project shop has no window with room for 1 h of work"):
        bound.check("host-1", now=MONDAY)
    timing(window("14:00", 1), deadline=MONDAY + HOUR).check("host-1", now=MONDAY)
    apart = Timing(
        work=HOUR,
        calendars={
            ProjectName("a"): calendar(window("08:00", 2)),
            ProjectName("b"): calendar(window("10:00", 2)),
        },
    )
    with refused(Invalid, match="projects a and b have no window in common"):
        apart.check("host-1", now=MONDAY)


def test_work_that_can_never_fit_waits_for_its_deadline_or_for_a_person() -> None:
    (stuck,) = timing(window("14:00", 1)).why_not_announce("host-1", now=MONDAY)
    assert (stuck.what, stuck.stuck) == ("host-1", True)
    assert stuck.reason.endswith("change the windows, or abandon it and order it again with a deadline")
    patient = timing(window("14:00", 1), deadline=MONDAY + HOUR)
    (waiting,) = patient.why_not_announce("host-1", now=MONDAY)
    assert not waiting.stuck
    assert waiting.reason.endswith("a minute to spare: it waits for the deadline, 2026-01-05T13:00:00Z")


def test_windows_that_open_at_different_times_must_be_open_together() -> None:
    both = Timing(
        work=HOUR,
        calendars={
            ProjectName("a"): calendar(window("14:00", 2), window("20:00", 2)),
            ProjectName("b"): calendar(window("17:00", 2), window("19:00", 2.5)),
        },
    )
    (waiting,) = both.why_not_start("host-1", now=MONDAY)
    assert waiting.until == MONDAY.replace(hour=20)
    assert unmarked(waiting.reason) == (
        "outside the windows that projects a and b have in common, which open 2026-01-05 20:00 (UTC)"
    )


def test_many_windows_are_evaluated_fast_enough_for_a_transaction() -> None:
    """Two projects with twelve windows a day never overlap, so the whole horizon is searched once."""
    day = [window(f"{hour:02}:00", 0.5) for hour in range(0, 24, 2)]
    other = [window(f"{hour:02}:30", 0.5) for hour in range(0, 24, 2)]
    assert first_fit([calendar(*day), calendar(*other)], after=MONDAY, work=QUARTER) is None
