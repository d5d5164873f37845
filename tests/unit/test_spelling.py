"""What somebody may have meant."""

import pytest

from forewarn.core.spelling import closest, counted, hint

HOSTS = ("host-1", "host-4", "rack2-host-1")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("host1", "host-1"),
        ("host-01", "host-1"),
        ("hots-4", "host-4"),
        ("rack-host-1", "rack2-host-1"),
        # A number that nothing has is not a slip for another number.
        ("host-9", None),
        ("hots-9", None),
        ("web", None),
        ("host", None),
        ("", None),
    ],
)
def test_a_name_with_another_number_is_not_what_was_meant(written: str, meant: str | None) -> None:
    assert closest(written, HOSTS) == meant


def test_a_hint_is_a_question_or_nothing() -> None:
    assert hint("oprator", ("viewer", "user", "operator")) == "; did you mean operator?"
    assert hint("host-9", HOSTS) == ""


@pytest.mark.parametrize(
    ("written", "known", "meant"),
    [
        ("db", "web", None),
        ("web", "web-0", None),
        ("x", "y", None),
        ("abcdef", "abcxyz", None),
        ("listne", "listen", "listen"),
        ("MACHINE", "machine", "machine"),
        ("aa", "a", "a"),
    ],
)
def test_only_what_is_close_is_suggested(written: str, known: str, meant: str | None) -> None:
    assert closest(written, [known]) == meant


def test_one_is_not_many() -> None:
    assert [counted(count, "host") for count in (0, 1, 2)] == ["0 hosts", "1 host", "2 hosts"]
