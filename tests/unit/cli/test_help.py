"""The help of every command: sections, described options, and valid examples."""

import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from forewarn.cli.command_group import EXAMPLES
from forewarn.cli.main import ALIASES, SECTIONS, LazyCommand, app

# Verbs that only read.
READING = {
    *("list", "show", "summary", "check", "status", "events", "doctor", "holds", "watch"),
    *("health", "metrics", "calendar", "promises"),
}


def walk(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    for name, each in group.commands.items():
        command = each.load() if isinstance(each, LazyCommand) else each
        path = f"{words} {name}"
        yield path, command
        if isinstance(command, click.Group):
            yield from walk(command, path)


COMMANDS = dict(walk(app, "forewarn"))
CHANGING = [
    path
    for path, command in COMMANDS.items()
    if path.split()[-1] not in READING and not isinstance(command, click.Group)
]


@pytest.mark.parametrize("path", COMMANDS)
def test_every_parameter_has_help(path: str) -> None:
    for param in COMMANDS[path].params:
        if isinstance(param, click.Option | click.Argument) and not getattr(param, "hidden", False):
            assert param.help, f"{path} {param.name}"
            assert param.help.endswith((".", ")", "…")), f"{path} {param.name}: {param.help}"


@pytest.mark.parametrize("path", CHANGING)
def test_the_help_of_a_changing_command_has_two_examples(path: str) -> None:
    shown = CliRunner().invoke(app, [*path.split()[1:], "--help"]).stdout
    examples = shown.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert len(examples) == 2
    assert all(line.strip().startswith(path) for line in examples)


@pytest.mark.parametrize("line", EXAMPLES.read_text().splitlines())
def test_every_example_is_a_valid_command_line(line: str) -> None:
    command: click.Command = app
    rest = shlex.split(line)[1:]
    path = "forewarn"
    while rest and isinstance(command, click.Group) and f"{path} {rest[0]}" in COMMANDS:
        path, rest = f"{path} {rest[0]}", rest[1:]
        command = COMMANDS[path]
    command.make_context(path, rest)


def test_the_program_lists_its_commands_by_section_without_aliases() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    titles = [line[:-1] for line in shown.splitlines() if line[:1].isalpha() and line.endswith(":")]
    assert titles == ["Options", "Options of every command", *SECTIONS]
    listed = {line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line[2:3].isalpha()}
    assert {name for section in SECTIONS.values() for name in section} <= listed
    assert not listed & ALIASES.keys()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "history --kind evnt-started",
            '--kind: there is no kind "evnt-started"; did you mean event-started',
        ),
        ("clock advance soon", "DURATION: expected a time such as 90, 15m, 1h30m or 7d, got 'soon'"),
        ("host maintenance host-1", "--action: is required: one of freeze, reboot, redeploy"),
        ("machine put web-0 --port abc", "--port: 'abc' is not a valid integer"),
        ("rollout start", "HOST, --all: name hosts, or use --all"),
        ("machine list --server http://x:abc", "--server, FOREWARN_SERVER: expected http://HOST:PORT"),
        ("machine list --server ftp://x", "--server, FOREWARN_SERVER: expected http://HOST:PORT"),
    ],
)
def test_wrong_usage_names_the_flag_and_the_help(words: str, message: str) -> None:
    ended = CliRunner().invoke(app, words.split())
    assert ended.exit_code == 2
    first, last = ended.stderr.splitlines()
    assert first.startswith(f"forewarn: {message}")
    command = " ".join(words.split()[: 1 if words.startswith("history") else 2])
    assert last == f"See `forewarn {command} --help`."


def test_a_misspelled_kind_gets_at_most_three_suggestions() -> None:
    message = CliRunner().invoke(app, ["history", "--kind", "machine-change"]).stderr
    assert (
        "did you mean machine-changed, machine-added or machine-moved?" in message or message.count("-") < 9
    )
