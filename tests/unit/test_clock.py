"""Service time: it never goes back, whatever the system clock does."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.clock import ManualClock, ScaledClock, SystemClock, clock_of
from forewarn.core.errors import Invalid
from forewarn.core.model.clock_slew import LARGEST_SLEW, SLEWING

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


class World:
    """The system's wall clock, which a test can set, and its monotonic clock."""

    def __init__(self) -> None:
        self.wall_seconds = NOON.timestamp()
        self.monotonic_seconds = 1000.0

    def wall(self) -> float:
        return self.wall_seconds

    def monotonic(self) -> float:
        return self.monotonic_seconds

    def passes(self, **span: float) -> None:
        seconds = timedelta(**span).total_seconds()
        self.wall_seconds += seconds
        self.monotonic_seconds += seconds

    def turn(self, **span: float) -> None:
        self.wall_seconds += timedelta(**span).total_seconds()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def system(world: World) -> SystemClock:
    return SystemClock(wall=world.wall, monotonic=world.monotonic)


@pytest.fixture
def scaled(world: World) -> ScaledClock:
    clock = ScaledClock(60, wall=world.wall, monotonic=world.monotonic)
    clock.allow(NOON + timedelta(days=1))
    return clock


# The system clock


def test_the_system_clock_returns_the_systems_time(world: World, system: SystemClock) -> None:
    assert system.now() == NOON
    world.passes(minutes=3)
    assert system.now() == NOON + timedelta(minutes=3)
    assert system.seconds() == (NOON + timedelta(minutes=3)).timestamp()


def test_time_continues_while_the_system_clock_is_behind(world: World, system: SystemClock) -> None:
    world.passes(minutes=10)
    system.now()
    world.turn(minutes=-5)
    assert system.now() == NOON + timedelta(minutes=10)
    world.passes(minutes=1)
    assert system.now() == NOON + timedelta(minutes=10, seconds=30)
    world.passes(minutes=1)
    assert system.now() == NOON + timedelta(minutes=11)


def test_service_time_equals_the_system_clock_after_it_has_caught_up(
    world: World, system: SystemClock
) -> None:
    world.turn(minutes=-5)
    world.passes(minutes=1)
    assert system.now() == NOON + timedelta(seconds=30)
    world.turn(minutes=10)
    assert system.now() == NOON + timedelta(minutes=6)


def test_time_starts_from_the_time_of_the_store(world: World, system: SystemClock) -> None:
    system.start_from(NOON + timedelta(hours=1))
    assert system.now() == NOON + timedelta(hours=1)
    world.passes(minutes=1)
    assert system.now() == NOON + timedelta(hours=1, seconds=30)


def test_service_time_that_is_ahead_slows_down_until_both_are_equal(
    world: World, system: SystemClock
) -> None:
    """A forward jump of three hours and its correction are compensated six hours later."""
    world.turn(hours=3)
    system.now()
    world.turn(hours=-3)
    assert (system.offset, system.speed) == (timedelta(hours=3), SLEWING)
    for _ in range(6 * 60):
        before = system.now()
        world.passes(minutes=1)
        assert system.now() == before + timedelta(seconds=30)
    assert (system.offset, system.speed) == (timedelta(), 1)
    world.passes(minutes=1)
    assert system.seconds() == world.wall()


@pytest.mark.parametrize(("ahead", "speed"), [(LARGEST_SLEW, SLEWING), (LARGEST_SLEW * 1.01, 1.0)])
def test_a_system_clock_that_is_years_behind_does_not_slow_service_time(
    world: World, system: SystemClock, ahead: timedelta, speed: float
) -> None:
    """A clock without a battery starts in 1970; that is not a correction."""
    world.turn(seconds=-ahead.total_seconds())
    before = system.now()
    world.passes(hours=1)
    assert system.now() == before + timedelta(hours=speed)
    assert system.speed == speed


steps = st.lists(
    st.tuples(st.floats(0, 1000), st.one_of(st.just(0.0), st.floats(-1e6, 1e6))), min_size=1, max_size=30
)


@given(steps=steps)
def test_service_time_advances_and_reaches_the_system_clock_after_any_changes(
    steps: list[tuple[float, float]],
) -> None:
    world = World()
    system = SystemClock(wall=world.wall, monotonic=world.monotonic)
    for passed, turned in steps:
        before, offset = system.seconds(), system.offset.total_seconds()
        world.passes(seconds=passed)
        world.turn(seconds=turned)
        gained = system.seconds() - before
        assert gained >= SLEWING * passed - 1e-3
        # Only a system clock that is set beyond service time shortens the notice of guests.
        assert gained <= passed + max(0.0, turned - offset) + 1e-2
    ahead = system.offset.total_seconds()
    if ahead > LARGEST_SLEW.total_seconds():
        return
    world.passes(seconds=ahead / (1 - SLEWING))
    assert system.seconds() == pytest.approx(world.wall(), abs=1e-2)


def test_an_earlier_time_of_the_store_changes_nothing(system: SystemClock) -> None:
    system.start_from(NOON - timedelta(days=1))
    assert system.now() == NOON


def test_a_forward_jump_is_reported_once(world: World, system: SystemClock) -> None:
    world.passes(minutes=5)
    assert system.jump() is None
    world.turn(minutes=10)
    assert system.jump() == timedelta(minutes=10)
    assert system.jump() is None


def test_a_jump_is_reported_even_if_the_time_was_read_before(world: World, system: SystemClock) -> None:
    world.turn(hours=1)
    system.now()
    assert system.jump() == timedelta(hours=1)


@pytest.mark.parametrize(("seconds", "noticed"), [(-600, False), (30, False), (60, False), (61, True)])
def test_only_more_than_a_minute_forward_counts_as_a_jump(
    world: World, system: SystemClock, seconds: int, noticed: bool
) -> None:
    world.turn(seconds=seconds)
    assert (system.jump() is not None) is noticed


def test_a_corrected_clock_has_not_jumped(world: World, system: SystemClock) -> None:
    world.turn(hours=-1)
    world.passes(minutes=1)
    assert system.jump() is None
    world.turn(hours=1)
    assert system.jump() is None
    assert system.now() == NOON + timedelta(minutes=1)


def test_the_time_between_two_runs_is_not_a_jump(world: World, system: SystemClock) -> None:
    system.start_from(NOON + timedelta(hours=1))
    world.passes(seconds=5)
    assert system.jump() is None


# The scaled clock


def test_a_scaled_clock_starts_at_the_systems_time_and_runs_faster(world: World, scaled: ScaledClock) -> None:
    assert scaled.now() == NOON
    world.passes(seconds=10)
    assert scaled.now() == NOON + timedelta(minutes=10)
    assert (scaled.kind, scaled.speed) == ("x60", 60)


def test_a_scaled_clock_ignores_changes_of_the_wall_clock(world: World, scaled: ScaledClock) -> None:
    world.turn(days=-3)
    world.passes(seconds=1)
    assert scaled.now() == NOON + timedelta(minutes=1)


def test_a_scaled_clock_continues_from_the_time_of_the_store(world: World, scaled: ScaledClock) -> None:
    reached = NOON + timedelta(days=30)
    scaled.start_from(reached)
    assert scaled.now() == reached
    scaled.allow(reached + timedelta(hours=1))
    world.passes(seconds=2)
    assert scaled.now() == reached + timedelta(minutes=2)


def test_a_scaled_clock_stops_at_its_allowed_end(world: World) -> None:
    clock = ScaledClock(60, wall=world.wall, monotonic=world.monotonic)
    world.passes(seconds=1)
    assert clock.now() == NOON
    clock.allow(NOON + timedelta(minutes=2))
    world.passes(seconds=10)
    assert clock.now() == NOON + timedelta(minutes=2)


def test_a_scaled_clock_does_not_jump_after_it_has_stopped(world: World, scaled: ScaledClock) -> None:
    scaled.start_from(NOON)
    scaled.allow(NOON + timedelta(minutes=2))
    world.passes(hours=1)
    scaled.allow(NOON + timedelta(hours=2))
    assert scaled.now() == NOON + timedelta(minutes=2)
    world.passes(seconds=1)
    assert scaled.now() == NOON + timedelta(minutes=3)


def test_an_earlier_end_does_not_shorten_the_allowed_time(world: World, scaled: ScaledClock) -> None:
    scaled.allow(NOON)
    world.passes(seconds=1)
    assert scaled.now() == NOON + timedelta(minutes=1)


# The manual clock


def test_a_manual_clock_moves_only_when_it_is_set() -> None:
    clock = ManualClock(NOON)
    assert clock.now() == NOON
    assert clock.seconds() == NOON.timestamp()
    clock.set(NOON + timedelta(hours=1))
    assert clock.now() == NOON + timedelta(hours=1)
    assert clock.seconds() == (NOON + timedelta(hours=1)).timestamp()
    clock.start_from(NOON + timedelta(days=1))
    assert clock.now() == NOON + timedelta(days=1)
    assert clock.speed == 0


def test_a_new_manual_clock_shows_an_aware_time() -> None:
    assert ManualClock().now().tzinfo is UTC


# The values of --clock


@pytest.mark.parametrize(
    ("text", "kind", "speed"),
    [("system", "system", 1), ("manual", "manual", 0), ("x60", "x60", 60), ("x0.5", "x0.5", 0.5)],
)
def test_clocks_are_made_by_name(text: str, kind: str, speed: float) -> None:
    clock = clock_of(text)
    assert (clock.kind, clock.speed) == (kind, speed)


@pytest.mark.parametrize(
    "text", ["", "x", "x0", "x-1", "xfast", "60", "X60", "xnan", "xinf", "x1e7", "System"]
)
def test_an_unknown_clock_is_refused(text: str) -> None:
    with pytest.raises(
        Invalid, match=r"expected system, manual or xN, where x60 runs a minute in each second"
    ):
        clock_of(text)


def test_a_concurrent_reader_never_sees_time_go_back(world: World) -> None:
    read: list[float] = []
    allowing = False

    def monotonic() -> float:
        nonlocal allowing
        if read and not allowing:  # the worker allows more time during a read
            allowing = True
            clock.allow(NOON + timedelta(minutes=10))
            allowing = False
        return world.monotonic_seconds

    clock = ScaledClock(60, wall=world.wall, monotonic=monotonic)
    clock.allow(NOON + timedelta(minutes=2))
    world.passes(hours=1)  # nothing could be saved, so time stands still
    read.append(clock.seconds())
    read.append(clock.seconds())
    read.append(clock.seconds())
    assert read == [(NOON + timedelta(minutes=2)).timestamp()] * 3
