"""Suggestions for misspelled names."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forewarn.core.text_formats import LONGEST_COMPARED, MOST_NAMES, closest, counted, hint

HOSTS = ("host-1", "host-4", "rack2-host-1")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("host1", "host-1"),
        ("host-01", "host-1"),
        ("hots-4", "host-4"),
        ("rack-host-1", "rack2-host-1"),
        # An unknown number is not a misspelling of another number.
        ("host-9", None),
        ("hots-9", None),
        ("web", None),
        ("host", None),
        ("", None),
    ],
)
def test_a_name_with_another_number_is_not_suggested(written: str, meant: str | None) -> None:
    assert closest(written, HOSTS) == meant


def test_a_hint_is_a_question_or_empty() -> None:
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
def test_only_similar_names_are_suggested(written: str, known: str, meant: str | None) -> None:
    assert closest(written, [known]) == meant


def slips(written: str, name: str) -> int:
    """Count slips by the definition, without regard to time."""
    rows = [list(range(len(name) + 1))]
    for i, letter in enumerate(written, start=1):
        row = [i]
        for j, wanted in enumerate(name, start=1):
            least = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and (letter, written[i - 2]) == (name[j - 2], wanted):
                least = min(least, rows[-2][j - 2] + 1)
            row.append(least)
        rows.append(row)
    return rows[-1][-1]


LETTERS = st.text("abc", min_size=1, max_size=12)


@given(LETTERS, LETTERS)
@example("abcabcabc", "bacbacbac")
@example("aabbccaabbcc", "abbccaabbcca")
def test_a_name_is_suggested_if_and_only_if_it_is_within_the_allowed_slips(written: str, name: str) -> None:
    longest = max(len(written), len(name))
    is_close = slips(written, name) <= min(longest - 1, max(longest // 3, 1), 3)
    assert closest(written, [name]) == (name if is_close else None)


def test_the_name_with_the_fewest_slips_is_suggested() -> None:
    assert closest("listening", ["lastenin", "listenink", "loztening"]) == "listenink"


class Drawn:
    """Names that count how many of them were looked at."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.count = names, 0

    def __iter__(self) -> Iterator[str]:
        for name in self.names:
            self.count += 1
            yield name


def test_long_names_that_differ_at_both_ends_are_compared_for_a_bounded_time() -> None:
    """A tenant chooses names and requests, so the work must be bounded."""
    middle = "abcdefghijklmnopqrstuvwxyz" * 2
    names = Drawn([f"x{middle}{'yz'[index % 2]}abcd" for index in range(MOST_NAMES)])
    closest(f"{middle}dcba", names)
    assert 0 < names.count < 50


def test_names_of_many_numbers_are_compared_for_a_bounded_time() -> None:
    names = Drawn([f"{'7a' * 29}{index:03}a" for index in range(MOST_NAMES)])
    assert closest(f"{'7a' * 29}9990", names) is None
    assert 0 < names.count < 200


def test_a_hint_looks_at_a_limited_number_of_names() -> None:
    names = Drawn([f"{'a' * 60}{index}" for index in range(2 * MOST_NAMES)])
    assert closest("b", names) is None
    assert names.count == MOST_NAMES


def test_texts_longer_than_names_get_no_suggestion() -> None:
    assert closest("a" * LONGEST_COMPARED, ["a" * LONGEST_COMPARED]) == "a" * LONGEST_COMPARED
    assert closest("a" * (LONGEST_COMPARED + 1), ["a" * LONGEST_COMPARED]) is None


def test_counts_use_singular_and_plural() -> None:
    assert [counted(count, "host") for count in (0, 1, 2)] == ["0 hosts", "1 host", "2 hosts"]
