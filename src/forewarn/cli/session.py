"""What every command knows: which server, who asks, whose project, and whether a program reads the answer.

These options are accepted before the noun, after it, and after the verb; the last one counts.
"""

import inspect
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, get_args

import typer

from forewarn.cli import terminal
from forewarn.cli.command_group import CommandGroup
from forewarn.cli.flags import in_flags
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import (
    NOT_FOUND,
    AnswerNotUnderstood,
    OutcomeUnknown,
    Reply,
    RequestRefused,
    ServerUnreachable,
)
from forewarn.core.errors import ForewarnError, Invalid

if TYPE_CHECKING:
    from forewarn.wire.answers.access_answers import CallerAnswer

V = TypeVar("V")

BAD_REQUEST = 400
DEFAULT_SERVER = "http://127.0.0.1:8170"

PANEL = "Everywhere"
SERVER_HELP = f"Where the server is. FOREWARN_SERVER says it for good; else it is {DEFAULT_SERVER}."

Server = Annotated[
    str | None, typer.Option("--server", metavar="URL", help=SERVER_HELP, rich_help_panel=PANEL)
]
Project = Annotated[
    str | None,
    typer.Option(
        "--project", metavar="NAME", help="Only of this project, or whose machine.", rich_help_panel=PANEL
    ),
]
Json = Annotated[
    bool | None, typer.Option("--json", help="Answer with JSON, for programs.", rich_help_panel=PANEL)
]
WHO_HELP = "Who you are. FOREWARN_TOKEN says it without showing it to others on this machine."
Token = Annotated[str | None, typer.Option("--token", metavar="SECRET", help=WHO_HELP, rich_help_panel=PANEL)]
OPTIONS: dict[str, Any] = {"server": Server, "token": Token, "project": Project, "json": Json}


def _hidden(option: Any) -> Any:
    """Leave an option out of the help."""
    kind, described = get_args(option)
    described = copy(described)
    described.hidden = True
    return Annotated[kind, described]


# Of commands that ask no server; given all the same, they are answered with where to ask instead.
HIDDEN_OPTIONS = {name: kind if name == "json" else _hidden(kind) for name, kind in OPTIONS.items()}


def as_typed() -> str:
    """Name this program so that it can be typed: by its path, where the shell would not find it."""
    typed, found = sys.argv[0], shutil.which("forewarn")
    if not os.access(typed, os.X_OK) or (found is not None and os.path.samefile(found, typed)):
        return "forewarn"
    return shlex.quote(typed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The options that every command has."""

    server: str | None = None
    token: str | None = field(default=None, repr=False)
    project: str | None = None
    json: bool = False

    @property
    def client(self) -> OperatorClient:
        """The way to the server."""
        return OperatorClient(
            self.server or os.environ.get("FOREWARN_SERVER") or DEFAULT_SERVER,
            token=self.token or os.environ.get("FOREWARN_TOKEN") or None,
            authorities=os.environ.get("FOREWARN_CA"),
            say=terminal.try_print_error,
        )

    @property
    def scope(self) -> dict[str, str]:
        """The query that says whose machine is meant."""
        return {"project": self.project} if self.project else {}

    def command(self, words: str) -> str:
        """Write a command that a person could type next, to the same server."""
        server = f" --server {self.server}" if self.server else ""
        return f"{as_typed()}{server} {words}"

    def caller(self) -> "CallerAnswer | None":
        """Ask the server who is asking, so that nobody is told to do what they may not; None: not known."""
        from forewarn.wire.answers.access_answers import CallerAnswer

        try:
            return self.client.get("/v1/caller", CallerAnswer).value
        except RequestRefused as refusal:
            if refusal.status != NOT_FOUND:  # the server is older than the question
                raise
            return None

    def now(self) -> datetime:
        """Ask the server for its time."""
        from forewarn.wire.answers.service_answers import ClockAnswer

        return self.client.get("/v1/clock", ClockAnswer).value.now

    def print_reply(self, reply: Reply[V], show: Callable[[V], None]) -> None:
        """Print a server's answer as it was sent for a program, or show it to a person."""
        self.print_answer(reply.json, lambda: show(reply.value))

    def print_answer(self, whole: object, show: Callable[[], None]) -> None:
        """Print an answer whole for a program, or show it to a person."""
        if self.json:
            terminal.print_json(whole)
        else:
            show()


Command = Callable[..., None]


def with_session(function: Command) -> Command:
    """Let a command take a Session as its first argument, and fail as a program should.

    Of a group it is the callback: its options hold for the commands below. `ctx` is passed where it is taken.
    """
    return _command(function, OPTIONS)


def within_machine(function: Command) -> Command:
    """Do the same for a command that asks no server: its help leaves out what is said to one."""
    return _command(function, HIDDEN_OPTIONS)


class Noun(CommandGroup):
    """The commands about one kind of thing, each of which takes a Session."""

    def __init__(
        self,
        *,
        callback: Command | None = None,
        takes: Callable[[Command], Command] = with_session,
        invoke_without_command: bool = False,
    ) -> None:
        """Take what has the options before the verb, and how commands take theirs."""
        super().__init__(
            no_args_is_help=True,
            callback=callback or with_session(lambda _: None),
            invoke_without_command=invoke_without_command,
        )
        self._takes = takes

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a command."""
        add = super().command(name, **settings)
        return lambda function: add(self._takes(function))


def keep_options(ctx: typer.Context, **given: Any) -> Session:
    """Keep the options that were typed so far: those after the verb go over those before it."""
    before = ctx.obj if isinstance(ctx.obj, Session) else Session()
    session = ctx.obj = replace(before, **{name: value for name, value in given.items() if value})
    return session


@contextmanager
def exit_codes(*, json: bool = False) -> Iterator[None]:
    """End what fails as a program should: with a message, and one of the exit codes that the help lists."""
    try:
        yield
    except RequestRefused as refusal:
        message = str(refusal)
        typed = in_flags(message) if refusal.status == BAD_REQUEST else message
        # What names a flag is wrong usage, whether it was found here or by the server.
        _end(typed, exit_code=1 if typed == message else 2, code=refusal.code, json=json)
    except OutcomeUnknown as error:
        _end(str(error), exit_code=3, code="Uncertain", json=json)
    except ServerUnreachable as error:
        _end(str(error), exit_code=3, code="Unreachable", json=json)
    except (AnswerNotUnderstood, ForewarnError) as error:
        exit_code = 2 if isinstance(error, Invalid) else 1
        _end(str(error), exit_code=exit_code, code=type(error).__name__, json=json)


def _end(message: str, *, exit_code: int, code: str, json: bool) -> NoReturn:
    if json:
        terminal.print_json_error(code, message)
    else:
        terminal.print_error(message)
    raise typer.Exit(exit_code) from None


def _command(function: Command, options: Mapping[str, Any]) -> Command:
    parameters = inspect.signature(function).parameters

    def command(ctx: typer.Context, **given: Any) -> None:
        session = keep_options(ctx, **{name: given.pop(name) for name in options})
        with exit_codes(json=session.json):
            function(session, **given, **({"ctx": ctx} if "ctx" in parameters else {}))

    # Typer reads a command's options from its signature.
    own = [each for each in list(parameters.values())[1:] if each.name != "ctx"]
    described = [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in options.items()
        ),
    ]
    command.__signature__ = inspect.Signature(described)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in described}
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    return command
