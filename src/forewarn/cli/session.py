"""The options of every command, the client that they configure, and the exit codes.

The options are accepted before the noun, after it, and after the verb. The last one counts.
"""

import inspect
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import OrderedGroup, SharedOption, VerbCommand, WrongUsage, shown_name
from forewarn.cli.completion import DEFAULT_SERVER
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import (
    AnswerNotUnderstood,
    OutcomeUnknown,
    Reply,
    RequestRefused,
    ServerUnreachable,
)
from forewarn.core.errors import ForewarnError, Invalid

if TYPE_CHECKING:
    from forewarn.wire.answers.access_answers import CallerAnswer
    from forewarn.wire.answers.order_answers import OrderAnswer

V = TypeVar("V")

BAD_REQUEST = 400
# The exit code that shells report for a program that SIGINT has ended.
INTERRUPTED = 130

Function = Callable[..., None]


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        ctx.obj = replace(ctx.ensure_object(Session), **{param.name: value})


def _shared(declared: str, about: str, **settings: Any) -> SharedOption:
    return SharedOption([declared], help=about, callback=_keep, expose_value=False, **settings)


def _everywhere(*, hidden: bool = False) -> tuple[click.Option, ...]:
    server = f"The server. Default: FOREWARN_SERVER, else {DEFAULT_SERVER}."
    who = "Your access token. FOREWARN_TOKEN keeps it out of the process list."
    return (
        _shared("--server", server, metavar="URL", hidden=hidden),
        _shared("--token", who, metavar="SECRET", hidden=hidden),
        _shared("--project", "Project to act in.", metavar="NAME", hidden=hidden),
        JSON,
    )


JSON = _shared("--json", "Print JSON, for programs.", is_flag=True)
EVERYWHERE = _everywhere()
# Commands that call no server accept these too, to explain what to use instead.
WITHIN_MACHINE = _everywhere(hidden=True)


def program_name() -> str:
    """Return what a person types to run this program: its path if the shell would not find it."""
    typed, found = sys.argv[0], shutil.which("forewarn")
    if not os.access(typed, os.X_OK) or (found is not None and os.path.samefile(found, typed)):
        return "forewarn"
    return shlex.quote(typed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The values of the shared options."""

    server: str | None = None
    token: str | None = field(default=None, repr=False)
    project: str | None = None
    json: bool = False

    @property
    def client(self) -> OperatorClient:
        """A client of the server."""
        return OperatorClient(
            _checked_url(self.server or os.environ.get("FOREWARN_SERVER") or DEFAULT_SERVER),
            token=self.token or os.environ.get("FOREWARN_TOKEN") or None,
            authorities=os.environ.get("FOREWARN_CA"),
            say=terminal.try_print_error,
        )

    @property
    def scope(self) -> dict[str, str]:
        """The query parameter that selects the project."""
        return {"project": self.project} if self.project else {}

    def command(self, words: str) -> str:
        """Return a command to type next, for the same server."""
        server = f" --server {self.server}" if self.server else ""
        return f"{program_name()}{server} {words}"

    def caller(self) -> "CallerAnswer":
        """Return the caller and their rights, to suggest only what they may do."""
        from forewarn.wire.answers.access_answers import CallerAnswer

        return self.client.get("/v1/caller", CallerAnswer).value

    def now(self) -> datetime:
        """Return the service time."""
        from forewarn.wire.answers.service_answers import ClockAnswer

        return self.client.get("/v1/clock", ClockAnswer).value.now

    def order(self, id_: str) -> "OrderAnswer":
        """Return an order."""
        from forewarn.wire.answers.order_answers import OrderDetailWithEventsAnswer

        return self.client.get(f"/v1/orders/{id_}", OrderDetailWithEventsAnswer).value.order

    def print_reply(self, reply: Reply[V], show: Callable[[V], None]) -> None:
        """Print the server's JSON for a program, or show the value to a person."""
        self.print_answer(reply.json, lambda: show(reply.value))

    def print_answer(self, whole: object, show: Callable[[], None]) -> None:
        """Print the whole answer as JSON for a program, or show it to a person."""
        if self.json:
            terminal.print_json(whole)
        else:
            show()


def _checked_url(typed: str) -> str:
    """Return the URL of a server; a malformed one is wrong usage."""
    from urllib.parse import urlsplit

    try:
        url = urlsplit(typed if "://" in typed else f"http://{typed}")
        valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # such as a port that is no number
        valid = False
    if not valid:
        raise WrongUsage(
            "--server, FOREWARN_SERVER", f"expected http://HOST:PORT or https://…, got {typed!r}"
        )
    return typed


def command(
    *params: click.Parameter,
    name: str | None = None,
    about: str | None = None,
    shared: Iterable[click.Parameter] = EVERYWHERE,
    cls: type[VerbCommand] = VerbCommand,
) -> Callable[[Function], VerbCommand]:
    """Turn a function that takes a Session and these parameters into a command."""

    def decorate(function: Function) -> VerbCommand:
        text = about or inspect.cleandoc(function.__doc__ or "")
        return cls(
            name or function.__name__.rstrip("_").replace("_", "-"),
            params=[*params, *shared],
            callback=_in_session(function),
            help=text,
            short_help=" ".join(text.partition("\n\n")[0].split()),
        )

    return decorate


class Noun(OrderedGroup):
    """The commands about one kind of thing; their functions take a Session."""

    def __init__(
        self,
        params: Iterable[click.Parameter] = EVERYWHERE,
        *,
        shared: Iterable[click.Parameter] = EVERYWHERE,
        alone: Function | None = None,
        **settings: Any,
    ) -> None:
        """Create the group.

        `params` stand before a verb, `shared` are added to each verb, and `alone` runs without a verb.
        """
        usual = {"callback": alone and _in_session(alone), "invoke_without_command": alone is not None}
        super().__init__(params=[*params], **{"no_args_is_help": True, **usual, **settings})
        self._shared = tuple(shared)

    def verb(self, *params: click.Parameter, **settings: Any) -> Callable[[Function], VerbCommand]:
        """Add a command."""

        def decorate(function: Function) -> VerbCommand:
            added = command(*params, **{"shared": self._shared, **settings})(function)
            self.add_command(added)
            return added

        return decorate


def _in_session(function: Function) -> Function:
    @wraps(function)
    def run(**given: Any) -> None:
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is None:
            session = ctx.ensure_object(Session)
            with exit_codes(json=session.json):
                function(session, **given)

    return run


@contextmanager
def exit_codes(*, json: bool = False) -> Iterator[None]:
    """Turn errors into a message and one of the exit codes that the help lists."""
    try:
        yield
    except RequestRefused as refusal:
        message = str(refusal)
        ctx = click.get_current_context(silent=True)
        params = ctx.command.params if ctx is not None and refusal.status == BAD_REQUEST else ()
        typed = in_flags(message, params)
        # A refusal that names a flag is wrong usage, whether the command or the server found it.
        _end(typed, exit_code=1 if typed == message else 2, code=refusal.code, json=json)
    except OutcomeUnknown as error:
        _end(str(error), exit_code=3, code="Uncertain", json=json)
    except ServerUnreachable as error:
        _end(str(error), exit_code=3, code="Unreachable", json=json)
    except (AnswerNotUnderstood, ForewarnError) as error:
        exit_code = 2 if isinstance(error, Invalid) else 1
        _end(str(error), exit_code=exit_code, code=type(error).__name__, json=json)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None


def _end(message: str, *, exit_code: int, code: str, json: bool) -> NoReturn:
    if json:
        terminal.print_json_error(code, message)
    else:
        terminal.print_error(message)
    raise click.exceptions.Exit(exit_code) from None


_FIELD = re.compile(r"([a-z_]+)(\[\d+\])?(\.[a-z_]+)*: ")
# Fields of the API that no parameter is named after.
_OTHER_FLAGS = {"mode": "--evacuate, --in-place", "expiry": "--expires", "from": "--from"}


def in_flags(message: str, params: Iterable[click.Parameter]) -> str:
    """Replace the API field at the beginning of an error by the command's flag."""
    flags = {**_OTHER_FLAGS, **{f"{param.name}": shown_name(param) for param in params}}
    field = _FIELD.match(message)
    if field is None or field[1] not in flags:
        return message
    return f"{flags[field[1]]}: {message[field.end() :]}"
