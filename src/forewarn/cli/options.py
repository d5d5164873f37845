"""Arguments and options of several commands: names, ids, reasons, and times as people type them."""

import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeVar

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import argument, flag, option
from forewarn.cli.completion import ids, names
from forewarn.cli.session import Session
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import Reply, RequestRefused
from forewarn.core.time_formats import EXPECTED_SPAN, parse_span
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.texts import is_guid, is_name

REASON = option("--reason", "TEXT", "Why, for the records.")
DEADLINE = option("--deadline", "TIME", "From then on windows give way; as 2026-01-31T12:00:00Z.")
TAKES = option("--takes", "DURATION", "How long a host is expected to take, where windows bind it.")
DRIVER = option(
    "--driver",
    "NAME",
    "Who does the work, as `forewarn driver list` names them; else as each host declares it.",
    shell_complete=names("drivers"),
)
EVACUATE = flag("--evacuate", "Machines that can leave do so first; the default.")
IN_PLACE = flag("--in-place", "All machines restart with the host.")
RETURNING = flag("--return returning", "Those that left come back afterwards, with notice of its own.")
HOST_WORK = option(
    "--host-work",
    "NAME",
    "Who works on the host itself, as `forewarn driver list` names them.",
    shell_complete=names("drivers"),
)
TOGETHER = option(
    "--together",
    "REASON",
    "Do a host in one go though it carries two update domains of a group; a broken promise.",
)
WHOLE = flag("--whole", "Do a host in one go; refused if it carries two update domains of a group.")
HEARTBEAT = option("--heartbeat", "DURATION", "How long an external driver may be silent. Else 10m.")
ONLY_NEW = flag("--new", "Only add it: refused if one of this name exists, which stays as it is.")

A = TypeVar("A", bound=ApiAnswer)
SHORTEST = 4
_PART_OF_ID = re.compile(r"[0-9A-Fa-f-]{1,36}")


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
    """Declare something; `new` refuses to change what exists."""
    headers = {"If-None-Match": "*"} if new else {}
    return session.client.call("PUT", path_of(what, name), kind, body=body, params=params, headers=headers)


def delete_from_fleet(session: Session, what: str, name: str, kind: type[ApiAnswer], **params: Any) -> None:
    """Take something out of the fleet, and print that."""
    reply: Reply[Any] = session.client.call("DELETE", path_of(what, name), kind, params=params)
    session.print_reply(reply, lambda gone: terminal.echo(f"{gone.name} is no longer in the fleet."))


def name_argument(metavar: str, completed_by: str | None = None) -> click.Argument:
    """Make the argument that names one thing; the shell completes it by a list of the server."""
    completion = names(completed_by) if completed_by else None
    return argument("name", metavar, shell_complete=completion)


def id_argument(metavar: str, help_: str = "Its id, or how it begins.") -> click.Argument:
    """Make the argument that is the id of one thing; the shell completes those that are listed."""
    listed = f"{metavar.strip('[]').lower()}s"
    required = not metavar.startswith("[")
    return argument("id_", metavar, help_, required=required, shell_complete=ids(listed))


OF_MACHINE = option("--machine", "NAME", "Only of this machine.", shell_complete=names("machines"))
OF_HOST = option("--host", "HOST", "Only of this host.", shell_complete=names("hosts"))
HOST = name_argument("HOST", "hosts")
MACHINE = name_argument("MACHINE", "machines")
ORDER = id_argument("ORDER")


def service_mode(*, evacuate: bool, in_place: bool, returning: bool) -> dict[str, Any]:
    """Return what becomes of the machines of a host that is worked on itself, as it is sent."""
    if evacuate and in_place:
        raise click.BadParameter("say --evacuate or --in-place, not both")
    if returning and in_place:
        raise click.BadParameter("--in-place moves no machine, so that none can --return")
    mode = "in-place" if in_place else "evacuate" if evacuate else None
    return {"mode": mode, "returning": returning or None}


def seconds(text: str, *, hint: str) -> float:
    """Read a time such as `90`, `15m` or `7d`; `hint` names where it was typed."""
    try:
        return parse_span(text).total_seconds()
    except ValueError:
        raise click.BadParameter(f"{EXPECTED_SPAN}, got {text!r}", param_hint=hint) from None


def seconds_or_none(text: str | None, *, hint: str) -> float | None:
    """Read a time, if one was typed."""
    return None if text is None else seconds(text, hint=hint)


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
    return {"amount": number(much), "ratio": number(ratio)} if times else number(much)


def number(written: str) -> float:
    """Read how much a machine takes of something."""
    try:
        return int(written) if written.isdecimal() else float(written)
    except ValueError:
        raise click.BadParameter(f"expected NAME=NUMBER, got {written!r}", param_hint="--resource") from None


URGENCY = (
    REASON,
    option("--emergency", "REASON", "Give no notice; recorded as a broken promise."),
    option("--notice", "DURATION", "Of an emergency, as 2m; left out: none."),
    flag("--despite-hold", "No hold stops the emergency."),
)
WORK = (*URGENCY, DEADLINE, TAKES, DRIVER, HEARTBEAT, TOGETHER)


def urgency(
    *, reason: str | None, emergency: str | None, notice: str | None, despite_hold: bool
) -> dict[str, Any]:
    """Make what is sent of why, and of promises that are not kept."""
    return {
        "reason": reason,
        "emergency": emergency,
        "notice_seconds": seconds_or_none(notice, hint="--notice"),
        "despite_hold": despite_hold or None,
    }


def work(
    *,
    deadline: str | None,
    takes: str | None,
    driver: str | None,
    heartbeat: str | None,
    together: str | None,
    **urgent: Any,
) -> dict[str, Any]:
    """Make what is sent of that and of the work: who does it, until when, how long, and how silent."""
    return {
        **urgency(**urgent),
        "driver": driver,
        "deadline": deadline,
        "expected_seconds": seconds_or_none(takes, hint="--takes"),
        "heartbeat_seconds": seconds_or_none(heartbeat, hint="--heartbeat"),
        "together": together,
    }


def path_of(what: str, name: str) -> str:
    """Return the path of what has a name; what could not be a name is refused as unknown."""
    from urllib.parse import quote

    project, slash, rest = name.partition("/")
    if name in ("", ".", "..") or slash:
        meant = (
            f"; say {rest} --project {project}"
            if what == "machine" and is_name(project) and is_name(rest)
            else ""
        )
        raise RequestRefused(f'{what} "{name}" does not exist{meant}')
    return f"/v1/{what}s/{quote(name, safe='')}"


id_of: Callable[[ApiAnswer], str] = attrgetter("id")


def full_id(client: OperatorClient, kind: type[ApiAnswer], typed: str) -> str:
    """Return the id of what is listed, by how it begins."""
    return typed.upper() if is_guid(typed) else id_of(find_by_prefix(client, kind, typed))


def path_by_id(client: OperatorClient, kind: type[ApiAnswer], typed: str) -> str:
    """Return the path of what is listed, by how its id begins."""
    return f"/v1/{kind.NOUN}s/{full_id(client, kind, typed)}"


def find_by_prefix(client: OperatorClient, kind: type[A], typed: str) -> A:
    """Find what is listed by how its id begins."""
    one = kind.NOUN
    if len(typed) < SHORTEST:
        raise RequestRefused(f"{one} {typed}: give at least {SHORTEST} characters of its id")
    like = _beginning(client, kind, typed)
    if not like:
        listing = {"hold": "holds", "event": "event list --all"}.get(f"{one}", f"{one} list")
        raise RequestRefused(f"no {one} begins with {typed}: `forewarn {listing}` shows those there are")
    if len(like) > 1:
        some = ", ".join(map(id_of, like[:5]))
        raise RequestRefused(f"{len(like)} {one}s begin with {typed}: {some}; give more of it")
    return like[0]


def _beginning(client: OperatorClient, kind: type[A], typed: str) -> list[A]:
    if not _PART_OF_ID.fullmatch(typed):
        return []
    # Past events are many: only those are asked for that may be meant.
    filters = {"all": True, "begins": typed} if kind.NOUN == "event" else {}
    return [each for each in client.all(kind, **filters).value.items if id_of(each).startswith(typed.upper())]
