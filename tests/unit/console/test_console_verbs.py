"""What the API can change, the console offers: each call has its verb, each field of it is asked for."""

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import pytest

from forewarn.api.app import ENDPOINTS
from forewarn.api.openapi import document

WEB = resources.files("forewarn.console") / "web"
# The tables of verbs, and where a rollout is planned.
TABLES = ("actions", "views/plan")
CHANGING = ("post", "put", "delete")
# The fleet file and rehearsals, which scripts send; and signing in, which is no verb.
ELSEWHERE = re.compile(r"/v1/(?:session|fleet|projects/\{name\}/rehearsal)\b")
# What a rehearsal says of its own orders.
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
def test_a_call_that_changes_something_is_a_verb_of_the_console(path: str, call: Mapping[str, Any]) -> None:
    page, verb = declared(), path.rpartition("/")[2]
    assert f'"{path}"' in page or f'"{verb}"' in page, "it has no entry in web/actions/*_verbs.js"
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    unasked = {name for name in fields(body) - OF_REHEARSALS if not re.search(rf"\b{name}\b", page)}
    assert not unasked, "the console does not ask for these fields"


def fields(schema: Mapping[str, Any]) -> set[str]:
    if "$ref" in schema:
        return fields(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    parts = (part for kind in ("anyOf", "oneOf", "allOf") for part in schema.get(kind, ()))
    return {*schema.get("properties", {}), *(name for part in parts for name in fields(part))}
