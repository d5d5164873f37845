"""Errors become responses by the nearest class that has one."""

import pytest

from forewarn.api.error_answers import AlreadyExists, refusal, status_of
from forewarn.core.errors import Conflict, ForewarnError, Invalid
from forewarn.wire.invalid_field import InvalidField, within_field


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidField("windows[0].start", "expected a time of day"), 400, "Invalid"),
        (AlreadyExists("host a exists"), 409, "AlreadyExists"),
        (Conflict("x"), 409, "Conflict"),
    ],
)
def test_a_subclass_is_answered_like_its_nearest_known_class(
    error: ForewarnError, status: int, code: str
) -> None:
    assert status_of(error) == refusal(error).status_code == status
    assert f'"code":"{code}"'.encode() in bytes(refusal(error).body)


def test_an_error_of_a_field_has_its_path_and_what_was_expected() -> None:
    with (
        pytest.raises(InvalidField) as refused,
        within_field("windows"),
        within_field("[0]"),
        within_field(".start"),
    ):
        raise Invalid("expected a time of day such as 22:00")
    assert (refused.value.path, refused.value.expected) == (
        "windows[0].start",
        "expected a time of day such as 22:00",
    )
    assert str(refused.value) == "windows[0].start: expected a time of day such as 22:00"
