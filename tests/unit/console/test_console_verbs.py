"""The console offers an action for each changing call of the API, with all fields of its body."""

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import pytest

from forewarn.api.app import ENDPOINTS
from forewarn.api.openapi import document

WEB = resources.files("forewarn.console") / "web"
# The folders with action tables and the plan form.
TABLES = ("actions", "views/plan")
CHANGING = ("post", "put", "delete")
# Scripts send the fleet file and rehearsals; signing in is not an action.
ELSEWHERE = re.compile(r"/v1/(?:session|fleet|projects/\{name\}/rehearsal)\b")
# Only rehearsals set this field.
OF_REHEARSALS = {"rehearsal"}

DOCUMENT = document(ENDPOINTS)


def declared() -> str:
    files = (file for folder in TABLES for file in (WEB / folder).iterdir() if file.name.endswith(".js"))
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def calls() -> Iterator[Any]:
    for path, methods in DOCUMENT["paths"].items():
        if not ELSEWHERE.match(path):
            for method in filter(methods.get, CHANGING):
                yield pytest.param(path, methods[method], id=f"{method} {path}")


@pytest.mark.parametrize(("path", "call"), list(calls()))
def test_the_console_has_an_action_for_each_changing_call(path: str, call: Mapping[str, Any]) -> None:
    page, verb = declared(), path.rpartition("/")[2]
    assert f'"{path}"' in page or f'"{verb}"' in page, "the call has no entry in web/actions/*_verbs.js"
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    missing = {name for name in fields(body) - OF_REHEARSALS if not re.search(rf"\b{name}\b", page)}
    assert not missing, "the action lacks these fields"


def fields(schema: Mapping[str, Any]) -> set[str]:
    if "$ref" in schema:
        return fields(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    parts = (part for kind in ("anyOf", "oneOf", "allOf") for part in schema.get(kind, ()))
    return {*schema.get("properties", {}), *(name for part in parts for name in fields(part))}
