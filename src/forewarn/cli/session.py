"""What every command knows: which server, who asks, whose project, and whether a program reads the answer.

These options are accepted before the noun, after it, and after the verb; the last one counts.
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
from forewarn.cli.command_group import NounGroup, SharedOption, VerbCommand
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
    from forewarn.wire.answers.order_answers import OrderAnswer

V = TypeVar("V")

BAD_REQUEST = 400
# As shells report a program that SIGINT has ended.
INTERRUPTED = 130
DEFAULT_SERVER = "http://127.0.0.1:8170"

SERVER_HELP = f"Where the server is. FOREWARN_SERVER says it for good; else it is {DEFAULT_SERVER}."
WHO_HELP = "Who you are. FOREWARN_TOKEN says it without showing it to others on this machine."

Function = Callable[..., None]


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep an option that was typed: one after the verb goes over the same one before it."""
    if value:
        ctx.obj = replace(ctx.ensure_object(Session), **{param.name: value})


def _shared(declared: str, about: str, **settings: Any) -> SharedOption:
    return SharedOption([declared], help=about, callback=_keep, expose_value=False, **settings)


def _everywhere(*, hidden: bool = False) -> tuple[click.Option, ...]:
    return (
        _shared("--server", SERVER_HELP, metavar="URL", hidden=hidden),
        _shared("--token", WHO_HELP, metavar="SECRET", hidden=hidden),
        _shared("--project", "Only of this project, or whose machine.", metavar="NAME", hidden=hidden),
        JSON,
    )


JSON = _shared("--json", "Answer with JSON, for programs.", is_flag=True)
EVERYWHERE = _everywhere()
# Of commands that ask no server; given all the same, they are answered with where to ask instead.
WITHIN_MACHINE = _everywhere(hidden=True)


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

    def order(self, id_: str) -> "OrderAnswer":
        """Read an order."""
        from forewarn.wire.answers.order_answers import OrderDetailWithEventsAnswer

        return self.client.get(f"/v1/orders/{id_}", OrderDetailWithEventsAnswer).value.order

    def print_reply(self, reply: Reply[V], show: Callable[[V], None]) -> None:
        """Print a server's answer as it was sent for a program, or show it to a person."""
        self.print_answer(reply.json, lambda: show(reply.value))

    def print_answer(self, whole: object, show: Callable[[], None]) -> None:
        """Print an answer whole for a program, or show it to a person."""
        if self.json:
            terminal.print_json(whole)
        else:
            show()


def command(
    *params: click.Parameter,
    name: str | None = None,
    about: str | None = None,
    shared: Iterable[click.Parameter] = EVERYWHERE,
    cls: type[VerbCommand] = VerbCommand,
) -> Callable[[Function], VerbCommand]:
    """Make a command of a function that takes a Session and these parameters."""

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


class Noun(NounGroup):
    """The commands about one kind of thing, each of which takes a Session."""

    def __init__(
        self,
        params: Iterable[click.Parameter] = EVERYWHERE,
        *,
        shared: Iterable[click.Parameter] = EVERYWHERE,
        alone: Function | None = None,
        **settings: Any,
    ) -> None:
        """Take the options before a verb, the shared ones of each verb, and what is done without a verb."""
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
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None


def _end(message: str, *, exit_code: int, code: str, json: bool) -> NoReturn:
    if json:
        terminal.print_json_error(code, message)
    else:
        terminal.print_error(message)
    raise click.exceptions.Exit(exit_code) from None


_FIELD = re.compile(r"([a-z_]+)(\[\d+\])?: ")

_SAME_NAME = (
    *(
        "abort",
        "action",
        "canary",
        "deadline",
        "despite_hold",
        "driver",
        "emergency",
        "fenced",
        "host",
        "hosts_at_once",
        "kind",
        "limit",
        "max_failures",
    ),
    *("name", "overlap", "project", "reason", "require_poll", "role", "secret", "since", "state"),
    *("host_work", "live", "to", "together", "whole"),
)
FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in _SAME_NAME},
    "expected_seconds": "--takes",
    "expires_seconds": "--expires",
    "expiry": "--expires",
    "gap_seconds": "--gap",
    "health_seconds": "--health",
    "heartbeat_seconds": "--heartbeat",
    "mode": "--evacuate, --in-place",
    "notice_seconds": "--notice",
    "returning": "--return",
    "soak_seconds": "--soak",
    "from": "--from",
    "take": "--take",
    "kinds": "--kind",
    "tags": "--tag",
    "labels": "--label",
    "resources": "--resource",
    "hosts": "HOST",
    "seconds": "DURATION",
    "url": "URL",
}


def in_flags(message: str) -> str:
    """Name the flag instead of the field that a refusal begins with; whatever else it says stays."""
    from forewarn.wire.fleet import MACHINE

    flags = {**{name: f"--{name.replace('_', '-')}" for name in MACHINE}, **FLAGS}
    field = _FIELD.match(message)
    if field is None or field[1] not in flags:
        return message
    return f"{flags[field[1]]}: {message[field.end() :]}"
