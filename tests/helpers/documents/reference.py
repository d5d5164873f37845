"""The generated parts of docs/reference. `make reference` writes them; a test compares them with the code.

Either a whole file is generated, or the region of a page between `<!-- generated: NAME -->` and `<!-- end
-->`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import click

from forewarn.api.app import ENDPOINTS
from forewarn.api.openapi import document
from forewarn.api.server_metrics import COUNTERS, GAUGES, HISTOGRAMS
from forewarn.cli.main import SECTIONS, app
from forewarn.wire.fleet import file_schema
from tests import ROOT
from tests.helpers.documents.setting_tables import setting_rows

REFERENCE = ROOT / "docs/reference"
REGION = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
SHARED = ("Idempotency-Key", "after", "limit", "If-Match", "If-None-Match")  # the page explains these once

Schema = Mapping[str, Any]


@cache
def generated() -> dict[Path, str]:
    """Return the text of each generated file, whole or with generated regions."""
    schema = json.dumps(file_schema(), indent=2, ensure_ascii=False)
    openapi = document(ENDPOINTS)
    regions = {
        "fleet": fleet_keys(),
        "settings": table("key", "flag", "default", "meaning", rows=setting_rows()),
        "calls": calls(openapi),
        "objects": objects(openapi),
        "metrics": metrics(),
        "commands": commands(),
        "help": help_texts(),
    }
    files = {REFERENCE / "fleet-file.schema.json": f"{schema}\n"}
    for page in sorted(REFERENCE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        filled = REGION.sub(lambda found: f"{found[1]}\n{regions[found[2]]}\n{found[3]}", text)
        if REGION.search(text):
            files[page] = filled
    return files


def table(*heading: str, rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> str:
    """Write a Markdown table."""
    cells = [[each.replace("|", r"\|") for each in row] for row in rows]
    lines = [heading, ("---",) * len(heading), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def fleet_keys() -> str:
    """Write a table of all keys of a fleet file."""
    sections = {
        "projects": "[projects.NAME]",
        "groups": "[groups.NAME]",
        "defaults": "[defaults]",
        "hosts": "[hosts.NAME]",
        "machines": "[[machines]]",
    }
    rows: list[tuple[str, ...]] = []
    for name, section in sections.items():
        schema = file_schema()["properties"][name]
        inner = schema.get("items") or schema.get("additionalProperties") or schema
        rows.append((f"**`{section}`**", "", ""))
        rows += _keys(inner)
    return table("key", "type", "meaning", rows=rows)


def _keys(schema: Schema, prefix: str = "") -> Iterator[tuple[str, ...]]:
    for key, field in schema.get("properties", {}).items():
        yield f"`{prefix}{key}`", _kind(field).removesuffix(" or empty or null"), _about(field)
        inner = field.get("items", field)
        if isinstance(inner, Mapping) and inner.get("properties"):
            yield from _keys(inner, f"{prefix}{key}.")


def calls(openapi: Schema) -> str:
    """Write a section for each call, by tag: its effect, parameters, body and answer."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in openapi["paths"].items():
        for method, call in operations.items():
            by_tag.setdefault(call["tags"][0], []).append(_call(openapi, method.upper(), path, call))
    return "\n".join(f"## {tag.capitalize()}\n\n" + "\n".join(found) for tag, found in by_tag.items())


def _call(openapi: Schema, method: str, path: str, call: Schema) -> str:
    lines = [f"### {method} {path}", "", call.get("description") or f"{call['summary']}.", ""]
    inputs = [
        (f"`{each['name']}`", each["in"], _kind(each["schema"]), _about(each))
        for each in call.get("parameters", ())
        if each["name"] not in SHARED
    ]
    for content in call.get("requestBody", {}).get("content", {}).values():
        body = _resolved(openapi, content["schema"])
        needed = body.get("required", ())
        inputs += [
            (f"`{name}`", "body, required" if name in needed else "body", _kind(field), _about(field))
            for name, field in body.get("properties", {}).items()
        ]
    if inputs:
        lines += [table("name", "in", "type", "meaning", rows=inputs)]
    shared = [f"`{each['name']}`" for each in call.get("parameters", ()) if each["name"] in SHARED]
    if shared:
        lines += [f"Also: {', '.join(shared)}.", ""]
    answers = [
        f"{status}: {_kind(content['schema'])}"
        for status, answer in call["responses"].items()
        if status.startswith("2")
        for content in answer.get("content", {}).values()
    ]
    if answers:
        lines += [f"Answers {'; '.join(answers)}.", ""]
    return "\n".join(lines)


def objects(openapi: Schema) -> str:
    """Write a section for each object and enumeration of the API."""
    found = []
    for name, schema in sorted(openapi["components"]["schemas"].items()):
        if name.endswith("Body"):
            continue
        lines = [f"## {name}", "", schema.get("description", "").replace("\n", " "), ""]
        if "enum" in schema:
            lines += [", ".join(f"`{value}`" for value in schema["enum"]) + ".", ""]
        rows = [
            (f"`{key}`", _kind(field), _about(field)) for key, field in schema.get("properties", {}).items()
        ]
        if rows:
            lines += [table("key", "type", "meaning", rows=rows)]
        found.append("\n".join(lines))
    return "\n".join(found)


def _resolved(openapi: Schema, schema: Schema) -> Schema:
    name = schema.get("$ref", "").rpartition("/")[2]
    return openapi["components"]["schemas"][name] if name else schema


def _kind(schema: Schema) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return name if name.endswith("Body") else f"[{name}](api-objects.md#{name.lower()})"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(_kind(each) for each in choices))
    if "enum" in schema:
        return " or ".join(_literal(value) for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    kinds = kind if isinstance(kind, list) else [kind]
    return " or ".join(schema.get("format", each) if each == "string" else each for each in kinds)


def _literal(value: str | None) -> str:
    return f"`{value}`" if value else "null" if value is None else "empty"


def _about(field: Schema) -> str:
    return str(field.get("description", "")).replace("\n", " ")


def metrics() -> str:
    """Write the metrics of the server: type, labels and meaning."""
    rows = []
    kinds: tuple[tuple[str, str, Mapping[str, tuple[str, ...]]], ...] = (
        ("gauge", "", GAUGES),
        ("counter", "_total", COUNTERS),
        ("histogram", "_duration_seconds", HISTOGRAMS),
    )
    for kind, suffix, declared in kinds:
        for name, (about, *labels) in declared.items():
            rows.append(
                (f"`forewarn_{name}{suffix}`", kind, ", ".join(f"`{each}`" for each in labels), about)
            )
    return table("metric", "type", "labels", "meaning", rows=rows)


def commands() -> str:
    """Write a table of all commands with their summaries, in the groups of `forewarn --help`."""
    rows = [
        (f"[`{path}`](command-help.md#{path.replace(' ', '-')})", command.get_short_help_str(limit=200))
        for path, command in _verbs()
    ]
    return table("command", "what it does", rows=rows)


def help_texts() -> str:
    """Write the help of each command as the program prints it, without the options of all commands."""
    found = []
    for path, command in _verbs():
        context = click.Context(command, info_name=path, terminal_width=100, max_content_width=100)
        text = command.get_help(context).partition("\nOptions of every command:")[0].rstrip()
        found.append(f"## {path}\n\n```text\n{text}\n```\n")
    return "\n".join(found)


def _verbs() -> Iterator[tuple[str, click.Command]]:
    def walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        if not isinstance(command, click.Group):
            yield path, command
            return
        context = click.Context(command, info_name=path)
        if command.invoke_without_command:
            yield path, command
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from walk(f"{path} {name}", found)

    for name in chain.from_iterable(SECTIONS.values()):
        yield from walk(f"forewarn {name}", app.commands[name].load())


if __name__ == "__main__":
    for file, text in generated().items():
        file.write_text(text, encoding="utf-8")
