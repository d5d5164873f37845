"""Frozen values, made and copied without their `__init__`."""

from dataclasses import FrozenInstanceError, dataclass

import pytest

from forewarn.core.copies import maker, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    rack: int
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HighPlace(Place):
    unit: int

    def __post_init__(self) -> None:
        if self.unit < 1:
            raise ValueError("no such unit")


def test_a_copy_has_what_was_changed_and_all_else_as_it_was() -> None:
    place = Place(rack=1, name="a")
    assert replace(place, rack=2) == Place(rack=2, name="a")
    assert place == Place(rack=1, name="a")


def test_a_copy_is_frozen_too() -> None:
    copy = replace(Place(rack=1))
    with pytest.raises(FrozenInstanceError):
        copy.rack = 2  # type: ignore[misc]


def test_what_is_inherited_is_copied() -> None:
    assert replace(HighPlace(rack=1, unit=3), name="a") == HighPlace(rack=1, name="a", unit=3)


def test_a_copy_is_checked_as_the_value_was() -> None:
    with pytest.raises(ValueError, match="no such unit"):
        replace(HighPlace(rack=1, unit=3), unit=0)


def test_a_value_is_made_of_its_fields_in_their_order() -> None:
    assert maker(HighPlace)(1, "a", 3) == HighPlace(rack=1, name="a", unit=3)


def test_what_is_made_is_checked_as_any_value() -> None:
    with pytest.raises(ValueError, match="no such unit"):
        maker(HighPlace)(1, "a", 0)


def test_a_value_is_made_of_all_its_fields() -> None:
    with pytest.raises(TypeError, match="unit"):
        maker(HighPlace)(1, "a")
