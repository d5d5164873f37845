"""The OpenAPI document: what FastAPI knows of requests, and of answers the schemas of their classes.

It is made when it is first asked for: the server needs nothing of it to start, or to answer anything else.
"""

from typing import Any, get_args, get_origin

from fastapi import FastAPI
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from forewarn.api.routing import ApiRoute, WithStatus
from forewarn.wire.answers.answer import ApiAnswer, Page
from forewarn.wire.answers.coding import key_of_page
from forewarn.wire.answers.service_answers import ErrorAnswer

# A component has the name of its class without "Answer", but for these, which programs know by another.
COMPONENTS = {
    "MachineNotice": "Told",
    "OneHostWithMachines": "OneHost",
    "OneErrorDetail": "ErrorAnswer",
    "Error": "ErrorDetail",
}


class DocumentedApp(FastAPI):
    """An app whose document says what its endpoints answer with."""

    endpoints: tuple[ApiRoute, ...] = ()

    def openapi(self) -> dict[str, Any]:
        """Return the document."""
        if not self.openapi_schema:
            document = super().openapi()
            answers = _Answers()
            answers.add(ErrorAnswer)
            for endpoint in self.endpoints:
                answers.promise(document, endpoint)
            document["components"]["schemas"].update(answers.schemas())
            self.openapi_schema = document
        return self.openapi_schema


class _Answers:
    """The schemas of all answers that the document refers to."""

    def __init__(self) -> None:
        self._kinds: set[type[ApiAnswer]] = set()
        self._bodies: dict[str, JsonSchemaValue] = {}

    def promise(self, document: dict[str, Any], endpoint: ApiRoute) -> None:
        """Write into the document what an endpoint answers with, if that is JSON."""
        if not endpoint.successes or not endpoint.include_in_schema:
            return
        schema = self.add(endpoint.answer)
        for method in endpoint.methods or ():
            responses = document["paths"][endpoint.path][method.lower()]["responses"]
            for status in endpoint.successes:
                responses[str(status)]["content"] = {"application/json": {"schema": schema}}

    def add(self, answer: Any) -> JsonSchemaValue:
        """Return the reference to a body's schema."""
        if get_origin(answer) is WithStatus:
            (answer,) = get_args(answer)
        paged = get_origin(answer) is Page
        kind: type[ApiAnswer] = get_args(answer)[0] if paged else answer
        self._kinds.add(kind)
        item = _component(kind.__name__)
        if paged:
            body = f"{item}s"
            items = {"type": "array", "items": _reference(item)}
            cursor = {"anyOf": [{"type": "string"}, {"type": "null"}]}
            self._bodies[body] = _exactly({key_of_page(kind): items, "next": cursor}, title=body)
        elif kind.NOUN is not None:
            body = _component(f"One{item}")
            self._bodies[body] = _exactly({kind.NOUN: _reference(item)}, title=body)
        else:
            body = item
        return _reference(body)

    def schemas(self) -> dict[str, JsonSchemaValue]:
        """Generate all schemas."""
        wanted: list[Any] = [(kind, "serialization", TypeAdapter(kind)) for kind in self._kinds]
        _, generated = TypeAdapter.json_schemas(
            wanted, ref_template=_reference("{model}")["$ref"], schema_generator=_AnswerSchema
        )
        return {**generated["$defs"], **self._bodies}


class _AnswerSchema(GenerateJsonSchema):
    """Has exactly the keys of an answer, and always all of them."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        found = super().dataclass_schema(schema)
        for each in found["properties"].values():
            each.pop("default", None)
        return {**found, **_exactly(found["properties"], title=_component(schema["cls"].__name__))}

    def normalize_name(self, name: str) -> str:
        return _component(super().normalize_name(name))


def _component(name: str) -> str:
    short = name.removesuffix("Answer")
    return COMPONENTS.get(short, short)


def _reference(component: str) -> JsonSchemaValue:
    return {"$ref": f"#/components/schemas/{component}"}


def _exactly(properties: dict[str, Any], *, title: str) -> JsonSchemaValue:
    shape = {"type": "object", "properties": properties, "required": list(properties)}
    return {**shape, "additionalProperties": False, "title": title}
