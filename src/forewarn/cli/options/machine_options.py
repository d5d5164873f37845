"""A machine's declaration, as it is typed: an option for each field that `forewarn.wire.fleet` declares."""

import inspect
from typing import Annotated, Any

import typer

from forewarn.cli.options.body_options import with_body
from forewarn.cli.options.completion import names
from forewarn.client.replies import given
from forewarn.wire.fields import Field
from forewarn.wire.fleet import MACHINE

# Said by the command's argument, and by --project.
_SAID_ELSEWHERE = {"name", "project"}
# What stands for the value, where neither N nor TEXT says enough.
_METAVARS = {
    "host": "HOST",
    "group": "GROUP",
    "priority": "WORD",
    "address": "IP",
    "mac": "MAC",
    "port": "PORT",
}
_COMPLETED = {"host": names("hosts"), "group": names("groups")}


def _body(*, tag: list[str] | None, **typed: Any) -> dict[str, Any]:
    return given({**typed, "tags": _tags(tag) if tag else None})


def _tags(typed: list[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in typed]
    for name, equals, _ in pairs:
        if not equals:
            raise typer.BadParameter(f"expected NAME=VALUE, got {name!r}", param_hint="--tag")
    return {name: value for name, _, value in pairs}


def _option(name: str, field: Field[Any]) -> inspect.Parameter:
    of = field.schema.get("anyOf", [field.schema])[0]["type"]
    kind, metavar = (int, "N") if of == "integer" else (str, "TEXT")
    option = typer.Option(
        metavar=_METAVARS.get(name, metavar),
        help=field.schema.get("description"),
        autocompletion=_COMPLETED.get(name),
    )
    return _parameter(name, Annotated[kind | None, option])


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_TAG = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="May be repeated.")]

with_declaration = with_body(
    _body,
    [
        _parameter("tag", _TAG) if name == "tags" else _option(name, field)
        for name, field in MACHINE.items()
        if name not in _SAID_ELSEWHERE
    ],
)
