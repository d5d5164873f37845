"""The command line has a verb for every API call, and its help is complete."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forewarn.cli.command_group import CommandAfterDashes
from forewarn.cli.main import ALIASES, LazyCommand, app
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of

ROOT = Path(__file__).parents[3]

# Calls whose command has an irregular name.
NAMED = {
    "POST /v1/rollouts": "rollout start",
    "POST /v1/webhooks": "webhook add",
    "DELETE /v1/webhooks/{id}": "webhook remove",
    "POST /v1/tokens": "token create",
    "GET /v1/caller": "token show",
    "GET /v1/clock/offset": "clock show",
    "POST /v1/holds": "hold set",
    "PUT /v1/fleet": "fleet apply",
    "PUT /v1/projects/{name}/rehearsal": "rehearse",
    "GET /v1/history": "history",
    "GET /v1/promises": "promises",
    "GET /v1/summary": "fleet summary",
    "GET /v1/stream": "watch",
    "GET /v1/calendar.ics": "calendar",
    "GET /healthz": "health",
    "GET /readyz": "health",
    "GET /metrics": "metrics",
}
# Calls for browsers only: the command line has its own token and requests only what it shows.
FOR_BROWSERS = {"GET /v1/overview", "GET /v1/session", "POST /v1/session", "DELETE /v1/session"}
# Commands with several calls, or none.
OWN = {
    *("gate host", "gate machine", "gate order", "gate rollout", "rollout plan", "history export"),
    *("serve", "backup", "unit install", "copy", "driver try", "host filter"),
    *("hold", "holds", "release"),  # older names of the verbs of `hold`
}
# Nouns for the inside of a machine. They use the guest endpoint and have their own reference pages.
INSIDE = {"guest": "guest-commands.md", "agent": "agent.md"}
VERBS = {"GET": "show", "PUT": "put", "DELETE": "delete"}


def command_of(call: str) -> str:
    """Name the command of a call by its noun and its verb."""
    if call in NAMED:
        return NAMED[call]
    method, path = call.split()
    noun, *rest = path.removeprefix("/v1/").split("/")
    singular = noun.removesuffix("s")
    match rest:
        case []:
            return f"{singular} {'list' if noun.endswith('s') else 'show'}"
        case ["{name}" | "{id}"]:
            return f"{singular} {VERBS[method]}"
        case [*_, verb]:
            return f"{singular} {verb}"
    raise AssertionError(call)


def commands() -> dict[str, Any]:
    """Return all commands by their names. `history` is both a command and a noun."""
    found: dict[str, Any] = {}

    def walk(command: Any, words: str) -> None:
        for name, each in getattr(command, "commands", {}).items():
            path = f"{words} {name}".strip()
            each = each.load() if isinstance(each, LazyCommand) else each
            if not hasattr(each, "commands") or each.invoke_without_command:
                found[path] = each
            walk(each, path)

    walk(app, "")
    return found


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[list[str]]:
    service = Service(sqlite_url(tmp_path))
    paths = Api(app_of(service))("GET", "/openapi.json").json()["paths"]
    yield [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    service.close()


def test_every_call_has_a_command_and_every_command_a_call(calls: list[str]) -> None:
    assert set(calls) >= FOR_BROWSERS
    wanted = {command_of(call) for call in calls if call not in FOR_BROWSERS}
    there = {words for words in commands() if words.split()[0] not in INSIDE}
    assert wanted - there == set()
    assert there - wanted == OWN


def test_every_command_is_in_the_reference() -> None:
    pages = ("commands.md", *INSIDE.values())
    text = "".join((ROOT / "docs/reference" / page).read_text() for page in pages)
    listed = set(re.findall(r"`forewarn ((?:[a-z]+(?:-[a-z]+)* ?)+)", text))
    assert set(commands()) - {words.strip() for words in listed} - ALIASES.keys() == set()


@pytest.mark.parametrize("words", sorted(commands()))
def test_arguments_reach_the_function_of_the_command(words: str) -> None:
    command = commands()[words]
    typed = {param.name for param in command.params if param.expose_value}
    typed |= {"command"} if isinstance(command, CommandAfterDashes) else set()
    takes = inspect.signature(command.callback).parameters.values()
    parameters = {each.name for each in takes if each.kind is not each.VAR_KEYWORD} - {"session", "_"}
    assert parameters <= typed
    assert parameters == typed or any(each.kind is each.VAR_KEYWORD for each in takes)


@pytest.mark.parametrize("words", sorted(commands()))
def test_help_shows_no_python_types(words: str) -> None:
    said = CliRunner().invoke(app, [*words.split(), "--help"]).stdout
    assert "Usage: " in said
    assert not re.search(r"<(bool|str|int|float|list.*|path|file)>", said), said
