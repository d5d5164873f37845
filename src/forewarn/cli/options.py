"""Options and arguments that several commands share, and the API paths of the things that they name."""

import re
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, TypeVar

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import WrongUsage, argument, flag, option
from forewarn.cli.session import Session
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import Reply, RequestRefused
from forewarn.core.basic_types import Kind
from forewarn.core.time_formats import EXPECTED_SPAN, parse_span
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.texts import either, is_guid, is_name

A = TypeVar("A", bound=ApiAnswer)
SHORTEST_ID = 4
_PART_OF_ID = re.compile(r"[0-9A-Fa-f-]{1,36}")


class Duration(click.ParamType[float]):
    """A span of time such as 90, 15m or 7d; its value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        try:
            return parse_span(f"{value}").total_seconds()
        except ValueError:
            raise click.BadParameter(f"{EXPECTED_SPAN}, got {value!r}", ctx, param) from None


class RecordKind(click.ParamType[str]):
    """A kind of record. There are more than sixty, so an error suggests the three most similar ones."""

    name = "kind"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the kind."""
        if value in {*Kind}:
            return value
        from difflib import get_close_matches

        near = get_close_matches(value, [*Kind], n=3)
        meant = f"; did you mean {either(near)}?" if near else "; `forewarn history` shows kinds in use"
        raise click.BadParameter(f'there is no kind "{value}"{meant}', ctx, param)


def duration(declared: str, about: str, **settings: Any) -> click.Option:
    """Declare an option that takes a span of time."""
    return option(declared, "DURATION", about, type=Duration(), **settings)


def kinds(declared: str) -> click.Option:
    """Declare an option that selects kinds of records."""
    about = "Only records of this kind, such as event-scheduled. Repeatable."
    return option(declared, "KIND", about, type=RecordKind(), multiple=True)


# The parameters of options are named as the fields of the API: a command sends them as they are.
REASON = option("--reason", "TEXT", "The reason, for the history.")
DEADLINE = option(
    "--deadline", "TIME", "From this time on, ignore maintenance windows, such as 2026-01-31T12:00:00Z."
)
TAKES = duration("--takes expected_seconds", "How long the work on a host takes, to fit it into windows.")
DRIVER = option("--driver", "DRIVER", "The driver that does the work. Default: the driver of each host.")
EVACUATE = flag("--evacuate", "Move machines off the host first, where possible (the default).")
IN_PLACE = flag("--in-place", "Restart all machines with the host.")
RETURNING = flag(
    "--return returning", "Move the machines back afterwards, with a notice of its own.", default=None
)
HOST_WORK = option("--host-work", "DRIVER", "The driver that works on the host itself.")
TOGETHER = option(
    "--together",
    "REASON",
    "Disturb two update domains of a group at once if the host carries them. Recorded as a broken promise.",
)
WHOLE = flag(
    "--whole",
    "Do all machines of a host at once. Refused if it carries two update domains of a group.",
    default=None,
)
HEARTBEAT = duration(
    "--heartbeat heartbeat_seconds",
    "Fail the work if an external driver sends nothing for this long. Default: 10m.",
)
ONLY_NEW = flag("--new", "Refuse to change one that exists.")
OF_MACHINE = option("--machine", "MACHINE", "Only of this machine.")
OF_HOST = option("--host", "HOST", "Only of this host.")
URGENCY = (
    REASON,
    option("--emergency", "REASON", "Start without notice. Recorded as a broken promise."),
    duration("--notice notice_seconds", "Notice of an emergency, such as 2m. Default: none."),
    flag("--despite-hold", "Start the emergency although a hold is in force.", default=None),
)
WORK = (*URGENCY, DEADLINE, TAKES, DRIVER, HEARTBEAT, TOGETHER)


def put_in_fleet(
    session: Session,
    what: str,
    name: str,
    kind: type[A],
    body: Mapping[str, Any],
    *,
    new: bool,
    **params: Any,
) -> Reply[A]:
    """Declare a thing; with `new`, refuse to change one that exists."""
    headers = {"If-None-Match": "*"} if new else {}
    return session.client.call("PUT", path_of(what, name), kind, body=body, params=params, headers=headers)


def delete_from_fleet(session: Session, what: str, name: str, kind: type[ApiAnswer], **params: Any) -> None:
    """Remove a thing from the fleet, and print that."""
    reply: Reply[Any] = session.client.call("DELETE", path_of(what, name), kind, params=params)
    session.print_reply(
        reply, lambda gone: terminal.echo(f"{what.capitalize()} {gone.name} removed from the fleet.")
    )


def name_argument(metavar: str) -> click.Argument:
    """Declare the argument that names one thing."""
    return argument("name", metavar, f"The name of the {metavar.lower()}.")


def id_argument(metavar: str, about: str = "The id, or a prefix.") -> click.Argument:
    """Declare the argument that is the id of one thing."""
    return argument("id_", metavar, about, required=not metavar.startswith("["))


HOST = name_argument("HOST")
MACHINE = name_argument("MACHINE")
ORDER = id_argument("ORDER")


def service_mode(*, evacuate: bool, in_place: bool, returning: bool | None) -> dict[str, Any]:
    """Return the fields of the API that say how a host service treats the machines."""
    if evacuate and in_place:
        raise WrongUsage("--evacuate, --in-place", "choose one of them")
    if returning and in_place:
        raise WrongUsage("--return", "--in-place moves no machine, so none can return")
    mode = "in-place" if in_place else "evacuate" if evacuate else None
    return {"mode": mode, "returning": returning}


def pairs(typed: Iterable[str], flag: str) -> dict[str, str]:
    """Read the values of an option that is typed as NAME=VALUE."""
    typed_pairs = [each.partition("=") for each in typed]
    for name, equals, _ in typed_pairs:
        if not equals:
            raise WrongUsage(flag, f"expected NAME=VALUE, got {name!r}")
    return {name: value for name, _, value in typed_pairs}


def scalar(written: str) -> object:
    """Read a number, true or false; anything else is text."""
    words = {"true": True, "false": False}
    return int(written) if written.isdecimal() else words.get(written, written)


def host_amount(written: str) -> object:
    """Read the amount of a host's resource: 64, or 64x4 to offer it four times over."""
    much, times, ratio = written.partition("x")
    return {"amount": amount(much), "ratio": amount(ratio)} if times else amount(much)


def amount(written: str) -> float:
    """Read the amount of a resource."""
    try:
        return int(written) if written.isdecimal() else float(written)
    except ValueError:
        raise WrongUsage("--resource", f"expected NAME=NUMBER, got {written!r}") from None


def path_of(what: str, name: str) -> str:
    """Return the path of a named thing. A name that cannot be a path segment does not exist."""
    from urllib.parse import quote

    project, slash, rest = name.partition("/")
    if name in ("", ".", "..") or slash:
        meant = (
            f"; use {rest} --project {project}"
            if what == "machine" and is_name(project) and is_name(rest)
            else ""
        )
        raise RequestRefused(f'{what} "{name}" does not exist{meant}')
    return f"/v1/{what}s/{quote(name, safe='')}"


id_of: Callable[[ApiAnswer], str] = attrgetter("id")


def full_id(client: OperatorClient, kind: type[ApiAnswer], typed: str) -> str:
    """Return the whole id of a thing, given a prefix of it."""
    return typed.upper() if is_guid(typed) else id_of(find_by_prefix(client, kind, typed))


def path_by_id(client: OperatorClient, kind: type[ApiAnswer], typed: str) -> str:
    """Return the path of a thing, given a prefix of its id."""
    return f"/v1/{kind.NOUN}s/{full_id(client, kind, typed)}"


def find_by_prefix(client: OperatorClient, kind: type[A], typed: str) -> A:
    """Find the only listed thing whose id begins with a prefix."""
    noun = kind.NOUN
    if len(typed) < SHORTEST_ID:
        raise RequestRefused(f"{noun} {typed}: type at least {SHORTEST_ID} characters of the id")
    found: list[A] = []
    if _PART_OF_ID.fullmatch(typed):
        # There may be many past events: request only those with this prefix.
        filters = {"all": True, "begins": typed} if noun == "event" else {}
        listed = client.all(kind, **filters).value.items
        found = [each for each in listed if id_of(each).startswith(typed.upper())]
    if not found:
        listing = "event list --all" if noun == "event" else f"{noun} list"
        raise RequestRefused(f"no {noun} begins with {typed}; `forewarn {listing}` shows all {noun}s")
    if len(found) > 1:
        some = ", ".join(map(id_of, found[:5]))
        raise RequestRefused(f"{len(found)} {noun}s begin with {typed}: {some}; type more of the id")
    return found[0]
