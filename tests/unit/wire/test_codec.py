"""The codec: frozen dataclasses as JSON values, and back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NewType

import pytest

from forewarn.wire.codec import Codec, Shape

HostName = NewType("HostName", str)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


class State(StrEnum):
    OK = "ok"
    CORDONED = "cordoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    update_domain: int
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    notice: timedelta | None = None
    budget: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    name: HostName
    state: State = State.OK
    tags: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    kinds: frozenset[State] = frozenset()
    policy: Policy = Policy()
    parent: HostName | None = None
    healthy: bool = True


NO_POLICY = Policy()
CODEC = Codec(
    {
        datetime: (datetime.isoformat, datetime.fromisoformat),
        timedelta: (timedelta.total_seconds, lambda seconds: timedelta(seconds=seconds)),
    },
    shapes={
        Part: Shape(keys={"update_domain": "domain"}, optional=("at",)),
        Policy: Shape(optional=("notice",), empty=NO_POLICY),
    },
)
WHOLE = Whole(
    name=HostName("a"),
    state=State.CORDONED,
    tags={"rack": "1"},
    parts=(Part(update_domain=1), Part(update_domain=2, at=NOON)),
    kinds=frozenset(State),
    policy=Policy(notice=timedelta(seconds=90)),
    parent=HostName("b"),
    healthy=False,
)
WRITTEN = {
    "name": "a",
    "state": "cordoned",
    "tags": {"rack": "1"},
    "parts": [{"domain": 1}, {"domain": 2, "at": "2026-07-01T12:00:00+00:00"}],
    "kinds": ["cordoned", "ok"],
    "policy": {"budget": 0, "notice": 90.0},
    "parent": "b",
    "healthy": False,
}


def test_a_value_is_written_by_its_fields_and_read_again() -> None:
    assert CODEC.write(WHOLE) == WRITTEN
    assert json.loads(json.dumps(WRITTEN)) == WRITTEN
    assert CODEC.read(Whole, WRITTEN) == WHOLE


def test_enums_are_written_as_plain_strings() -> None:
    written = CODEC.write(WHOLE)
    assert type(written["state"]) is str
    assert {type(each) for each in written["kinds"]} == {str}


def test_none_is_written_unless_the_field_is_optional() -> None:
    written = CODEC.write(Whole(name=HostName("a"), parts=(Part(update_domain=1),)))
    assert written["parent"] is None
    assert written["parts"] == [{"domain": 1}]


def test_an_empty_value_is_one_object() -> None:
    read = CODEC.read(Whole, {"name": "a", "policy": {}})
    assert read.policy is NO_POLICY
    assert CODEC.write(read)["policy"] == {}


def test_a_missing_key_is_the_default() -> None:
    assert CODEC.read(Whole, {"name": "a"}) == Whole(name=HostName("a"))


def test_an_unknown_key_is_ignored() -> None:
    assert CODEC.read(Whole, WRITTEN | {"later": {"more": 1}}) == WHOLE


@pytest.mark.parametrize("written", [{}, {"name": "a", "state": "gone"}, None, {"name": "a", "parts": 1}])
def test_a_json_value_that_does_not_fit_is_refused(written: object) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        CODEC.read(Whole, written)


def test_the_keys_of_a_class_are_in_the_order_of_its_fields() -> None:
    assert CODEC.keys(Part) == ("domain", "at")
    assert CODEC.keys(Policy) == ("notice", "budget")


def test_a_tuple_of_values_is_a_list() -> None:
    assert CODEC.write(WHOLE.parts) == WRITTEN["parts"]
    assert CODEC.read(tuple[Part, ...], WRITTEN["parts"]) == WHOLE.parts


def test_a_reader_reads_what_the_codec_reads() -> None:
    codec = Codec({datetime: (datetime.isoformat, datetime.fromisoformat)})
    assert codec.reader(datetime | None)(None) is None
    assert codec.reader(datetime | None)(NOON.isoformat()) == NOON
    read = codec.reader(tuple[Part, ...])
    written = [{"update_domain": 1, "at": NOON.isoformat()}, {"update_domain": 2}]
    assert read(written) == read(written) == (Part(update_domain=1, at=NOON), Part(update_domain=2))
    assert read(written) == codec.read(tuple[Part, ...], written)
