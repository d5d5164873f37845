"""How a command ends that fails: with a message, and a code that scripts can rely on."""

import pytest
import typer

from forewarn.cli.session import exit_codes
from forewarn.client.replies import AnswerNotUnderstood, RequestRefused, ServerUnreachable
from forewarn.core.errors import Conflict, Invalid


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RequestRefused("it is started"), 1),
        (RequestRefused("role: expected one of two", status=400), 2),
        (ServerUnreachable("nobody answers"), 3),
        (AnswerNotUnderstood("it sent no 'now'"), 1),
        (Conflict("another agent runs"), 1),
        (Invalid("the file is no config"), 2),
    ],
)
def test_an_error_is_a_message_and_a_code(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, exit_codes():
        raise error
    assert ended.value.exit_code == code
    assert str(error).partition(": ")[2] in capsys.readouterr().err
