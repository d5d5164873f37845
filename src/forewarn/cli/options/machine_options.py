"""A machine's declaration, as it is typed: an option for each field that `forewarn.wire.fleet` declares."""

from typing import Any

import click

from forewarn.cli.command_group import option
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
    "mobility": "WORD",
    "address": "IP",
    "mac": "MAC",
    "port": "PORT",
    "vm_id": "UUID",
}
_COMPLETED = {"host": names("hosts"), "group": names("groups")}


def declaration(
    *, tag: tuple[str, ...], label: tuple[str, ...], resource: tuple[str, ...], **typed: Any
) -> dict[str, Any]:
    """Make what is sent of the options of a machine."""
    amounts = {name: _number(value) for name, value in pairs(resource, "--resource").items()}
    given_pairs = {"tags": pairs(tag, "--tag"), "labels": pairs(label, "--label"), "resources": amounts}
    return given({**typed, **{name: values or None for name, values in given_pairs.items()}})


def pairs(typed: tuple[str, ...], flag: str) -> dict[str, str]:
    """Read what was typed pair by pair."""
    typed_pairs = [each.partition("=") for each in typed]
    for name, equals, _ in typed_pairs:
        if not equals:
            raise click.BadParameter(f"expected NAME=VALUE, got {name!r}", param_hint=flag)
    return {name: value for name, _, value in typed_pairs}


def plain(written: str) -> object:
    """Read a number, a yes or a no; all else is a text."""
    words = {"true": True, "false": False}
    return int(written) if written.isdecimal() else words.get(written, written)


def amount(written: str) -> object:
    """Read how much a host has of something: 64, or 64x4 of what it gives out four times."""
    much, times, ratio = written.partition("x")
    return {"amount": _number(much), "ratio": _number(ratio)} if times else _number(much)


def _number(written: str) -> float:
    try:
        return int(written) if written.isdecimal() else float(written)
    except ValueError:
        raise click.BadParameter(f"expected NAME=NUMBER, got {written!r}", param_hint="--resource") from None


# The fields that are typed pair by pair.
_PAIRS = {
    "tags": option("--tag", "NAME=VALUE", "May be repeated.", multiple=True),
    "labels": option("--label", "NAME=VALUE", "What it asks of its host; may be repeated.", multiple=True),
    "resources": option(
        "--resource", "NAME=NUMBER", "What it takes of its host; may be repeated.", multiple=True
    ),
}


def _option(name: str, field: Field[Any]) -> click.Option:
    of = field.schema.get("anyOf", [field.schema])[0]["type"]
    kind, metavar = (int, "N") if of == "integer" else (str, "TEXT")
    return option(
        f"--{name.replace('_', '-')}",
        _METAVARS.get(name, metavar),
        field.schema.get("description", ""),
        type=kind,
        shell_complete=_COMPLETED.get(name),
    )


DECLARATION = tuple(
    _PAIRS.get(name) or _option(name, field) for name, field in MACHINE.items() if name not in _SAID_ELSEWHERE
)
