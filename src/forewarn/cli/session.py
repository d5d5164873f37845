"""What every command knows: which server, who asks, whose project, and whether a program reads the answer.

These options are accepted before the noun, after it, and after the verb; the last one counts.
"""

import inspect
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, TypeVar, get_args

import typer

from forewarn.cli import terminal
from forewarn.cli.command_group import CommandGroup
from forewarn.cli.flags import in_flags
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import Reply, RequestRefused, ServerUnreachable

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
        )

    @property
    def scope(self) -> dict[str, str]:
        """The query that says whose machine is meant."""
        return {"project": self.project} if self.project else {}

    def command(self, words: str) -> str:
        """Write a command that a person could type next, to the same server."""
        server = f" --server {self.server}" if self.server else ""
        return f"{as_typed()}{server} {words}"

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


def keep_options(
    ctx: typer.Context, server: Server = None, token: Token = None, project: Project = None, json: Json = None
) -> None:
    """Keep the options that stand before a verb."""
    ctx.obj = _merged(ctx, server, token, project, json)


def noun(help_: str, *, callback: Callable[..., None] = keep_options) -> CommandGroup:
    """Make the group of commands about one kind of thing; `callback` has the options before the verb."""
    group = CommandGroup(help=help_, no_args_is_help=True, callback=callback)
    group.info.short_help = help_
    return group


def with_session(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command take a Session as its first argument, and fail as a program should."""
    return _command(function, OPTIONS)


def within_machine(function: Callable[..., None]) -> Callable[..., None]:
    """Do the same for a command that asks no server: its help leaves out what is said to one."""
    return _command(function, HIDDEN_OPTIONS)


def _command(function: Callable[..., None], options: Mapping[str, Any]) -> Callable[..., None]:
    def command(
        ctx: typer.Context, server: Server, token: Token, project: Project, json: Json, **given: Any
    ) -> None:
        session = _merged(ctx, server, token, project, json)
        try:
            function(session, **given)
        except RequestRefused as refusal:
            message = str(refusal)
            typed = in_flags(message) if refusal.status == BAD_REQUEST else message
            terminal.print_error(typed)
            # What names a flag is wrong usage, whether it was found here or by the server.
            raise typer.Exit(1 if typed == message else 2) from None
        except ServerUnreachable as error:
            terminal.print_error(str(error))
            raise typer.Exit(3) from None

    # Typer reads a command's options from its signature.
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    own = list(inspect.signature(function).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in options.items()
    ]
    own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    parameters = [context, *own, *shared]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    return command


def _merged(
    ctx: typer.Context, server: str | None, token: str | None, project: str | None, json: bool | None
) -> Session:
    session = ctx.obj if isinstance(ctx.obj, Session) else Session()
    return replace(
        session,
        server=server or session.server,
        token=token or session.token,
        project=project or session.project,
        json=bool(json) or session.json,
    )
