"""The message and the exit code of a failed command."""

import json
from pathlib import Path

import click
import pytest
from click.exceptions import Exit
from click.testing import CliRunner

from forewarn.cli.main import app
from forewarn.cli.session import exit_codes
from forewarn.client.replies import AnswerNotUnderstood, RequestRefused, ServerUnreachable
from forewarn.core.errors import Conflict, Invalid


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RequestRefused("it is started"), 1),
        (RequestRefused("role: expected one of two", status=400), 2),
        (ServerUnreachable("no server answers"), 3),
        (AnswerNotUnderstood("it sent no 'now'"), 1),
        (Conflict("another agent runs"), 1),
        (Invalid("the file is no config"), 2),
    ],
)
def test_an_error_is_a_message_and_an_exit_code(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    command = click.Command("create", params=[click.Option(["--role"])])
    with click.Context(command), pytest.raises(Exit) as ended, exit_codes():
        raise error
    assert ended.value.exit_code == code
    assert str(error).partition(": ")[2] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RequestRefused("it is started", status=409, code="Conflict"), "Conflict", "it is started"),
        (RequestRefused("nothing was changed"), "Refused", "nothing was changed"),
        (ServerUnreachable("no server answers\nstart one"), "Unreachable", "no server answers\nstart one"),
        (Invalid("the file is no config"), "Invalid", "the file is no config"),
    ],
)
def test_with_json_the_error_is_json(
    error: Exception, code: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Exit), exit_codes(json=True):
        raise error
    written = capsys.readouterr()
    assert json.loads(written.err) == {"error": {"code": code, "message": message}}
    assert written.out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--json machine lst", "no such command 'lst'. Did you mean 'list'?"),
        ("machine list --json --grup web", "no such option '--grup'. Did you mean '--group'?"),
        ("machine list --frobnicate --json", "no such option '--frobnicate'"),
        ("clock advance soon --json", "DURATION: expected a time such as 90"),
    ],
)
def test_with_json_a_usage_error_is_json(words: str, message: str) -> None:
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code == 2
    error = json.loads(result.stderr)["error"]
    assert error["code"] == "Usage"
    assert error["message"].startswith(message)
    assert result.stdout == ""


@pytest.mark.parametrize(
    "words", ["--json copy nowhere.db new.db", "copy nowhere.db new.db --json", "--json backup {file}"]
)
def test_with_json_an_error_of_a_local_command_is_json(words: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("something")
    result = CliRunner().invoke(app, words.format(file=tmp_path / "taken").split())
    assert result.exit_code == 1
    assert set(json.loads(result.stderr)["error"]) == {"code", "message"}


def test_json_of_a_nested_command_does_not_count() -> None:
    result = CliRunner().invoke(app, ["gate", "hots", "--", "program", "--json"])
    assert result.exit_code == 2
    assert "Did you mean 'host'?" in result.stderr
    assert not result.stderr.startswith("{")


@pytest.mark.parametrize("words", ["xyz", "machine frobnicate", "machine list --zzz"])
def test_only_similar_commands_are_suggested(words: str) -> None:
    error = CliRunner().invoke(app, words.split()).stderr
    assert "did you mean" not in error.casefold()
