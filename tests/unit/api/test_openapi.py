"""The OpenAPI document describes every call, parameter and field."""

from collections.abc import Iterator
from typing import Any

import pytest

from forewarn.api.app import ENDPOINTS
from forewarn.api.openapi import document

DOCUMENT = document(ENDPOINTS)
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}
SCHEMAS = DOCUMENT["components"]["schemas"]


def undescribed(schema: Any, path: str) -> Iterator[str]:
    """Yield the path of each property without a description, at any depth."""
    if isinstance(schema, list):
        for each in schema:
            yield from undescribed(each, path)
    elif isinstance(schema, dict):
        for name, each in schema.get("properties", {}).items():
            if not each.get("description"):
                yield f"{path}.{name}"
            yield from undescribed(each, f"{path}.{name}")
        for key in ("items", "additionalProperties", "anyOf"):
            yield from undescribed(schema.get(key), path)


@pytest.mark.parametrize("call", OPERATIONS)
def test_every_call_and_parameter_has_a_description(call: str) -> None:
    operation = OPERATIONS[call]
    assert operation["summary"]
    assert not operation["summary"].endswith(".")
    assert operation["description"].endswith(".")
    assert [each["name"] for each in operation.get("parameters", ()) if not each["description"]] == []
    body = operation.get("requestBody", {"content": {}})["content"].get("application/json", {})
    assert [*undescribed(body.get("schema"), "body")] == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_and_field_has_a_description(name: str) -> None:
    assert SCHEMAS[name]["description"]
    assert [*undescribed(SCHEMAS[name], name)] == []
