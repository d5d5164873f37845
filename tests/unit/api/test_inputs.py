"""The inputs of endpoints, and the fields of queries and bodies."""

import re

import pytest

from forewarn.api.app import ENDPOINTS
from forewarn.api.inputs import BodyInput, PathInput, QueryInput, RawBodyInput, inputs_of
from forewarn.api.request_fields import FLAG_IN_QUERY, LINE, one_of, seconds, whole, whole_in_query
from forewarn.api.request_models import Body, Query, field, nullable, request_model
from forewarn.api.routing import ApiRoute
from forewarn.core.basic_types import Priority
from forewarn.core.errors import Invalid
from forewarn.wire.fields import several


@request_model
class Part(Body):
    """A body within a body."""

    count: int = field(whole(minimum=0, maximum=9))


@request_model
class Whole(Body):
    """A body."""

    reason: str = field(LINE)
    wait_seconds: float = field(seconds(exclusiveMinimum=0, maximum=86400), default=60)
    parts: tuple[Part, ...] = field(several(Part.part(), most=2), default=())


@request_model
class Wanted(Query):
    """A query."""

    limit: int = field(whole_in_query(minimum=1, maximum=10), default=5)
    open: bool = field(FLAG_IN_QUERY, default=False)
    priority: tuple[Priority, ...] = field(several(one_of(Priority)), default=())
    name: str | None = nullable(LINE)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.method} {each.path}")
def test_every_endpoint_takes_what_a_request_has(endpoint: ApiRoute) -> None:
    found = endpoint.inputs
    in_path = {name for name, each in found.items() if isinstance(each, PathInput)}
    assert in_path == set(re.findall(r"\{(\w+)\}", endpoint.path))
    for kinds in (QueryInput, BodyInput | RawBodyInput):
        assert len([each for each in found.values() if isinstance(each, kinds)]) <= 1
    if endpoint.method in ("GET", "HEAD"):
        assert not [each for each in found.values() if isinstance(each, BodyInput | RawBodyInput)]


def test_a_parameter_without_an_input_is_an_error() -> None:
    async def handler(limit: int) -> None: ...

    with pytest.raises(TypeError, match="no input for a parameter of type <class 'int'>"):
        inputs_of(handler)


def test_a_body_is_read_by_its_fields() -> None:
    body = Whole.read({"reason": "why", "parts": [{"count": 3}]})
    assert (body.reason, body.wait_seconds, [part.count for part in body.parts]) == ("why", 60, [3])


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([], "the body: expected an object, got a list"),
        ({}, "reason: this is missing"),
        ({"reason": "why", "parts": [{"count": True}]}, "parts[0].count: expected a whole number, got true"),
        ({"reason": "why", "parts": [{"count": 1.0}]}, "parts[0].count: expected a whole number, got 1.0"),
        ({"reason": "why", "parts": [{"count": 10}]}, "parts[0].count: expected at most 9, got 10"),
        ({"reason": "why", "parts": [{}]}, "parts[0].count: this is missing"),
        ({"reason": "why", "parts": [1]}, "parts[0]: expected an object, got 1"),
        ({"reason": "why", "parts": [{"count": 1, "x": 1}]}, "parts[0].x: there is no such key in the body"),
        ({"reason": "why", "parts": [{}, {}, {}]}, "parts: expected at most 2 items, got 3"),
        ({"reason": "why", "wait_seconds": 0}, "wait_seconds: expected more than 0 s, got 0 s"),
        ({"reason": "why", "wait_seconds": "5"}, 'wait_seconds: expected a number, got "5"'),
        ({"reason": "why", "wait_seconds": float("inf")}, "wait_seconds: expected a finite number"),
        ({"reason": "why", "wait_seconds": 10**400}, "wait_seconds: expected a finite number"),
    ],
)
def test_a_wrong_body_is_refused_with_where_it_is_wrong(written: object, message: str) -> None:
    with pytest.raises(Invalid, match=re.escape(message)):
        Whole.read(written)


def test_a_query_is_read_from_text() -> None:
    query = Wanted.read([("limit", "7.0"), ("open", "Yes"), ("priority", "spot"), ("priority", "regular")])
    assert (query.limit, query.open, query.name) == (7, True, None)
    assert query.priority == (Priority.SPOT, Priority.REGULAR)


def test_an_empty_parameter_is_none_and_the_last_one_counts() -> None:
    query = Wanted.read([("limit", "x"), ("limit", "3"), ("open", ""), ("priority", ""), ("unknown", "")])
    assert (query.limit, query.open, query.priority) == (3, False, ())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("limit", "0", 'limit: expected at least 1, got "0"'),
        ("limit", "1.5", "limit: expected a whole number"),
        ("limit", "1" * 5000, "limit: expected a whole number"),
        ("open", "perhaps", 'open: expected true or false, got "perhaps"'),
        ("priority", "spott", 'priority[0]: expected regular or spot, got "spott"; did you mean spot?'),
        ("nam", "x", "nam: there is no such query parameter"),
    ],
)
def test_a_wrong_query_is_refused_with_the_parameter(name: str, text: str, message: str) -> None:
    with pytest.raises(Invalid, match=re.escape(message)):
        Wanted.read([(name, text)])
