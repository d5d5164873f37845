"""Arguments and options of several commands: names, ids, reasons, and times as people type them."""

from typing import Any

import click

from forewarn.cli.command_group import argument, flag, option
from forewarn.cli.options.completion import ids, names
from forewarn.core.moments import EXPECTED_SPAN, parse_span

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


def only_new_headers(new: bool) -> dict[str, str]:
    """Return the headers of a PUT that may be told to change nothing that exists."""
    return {"If-None-Match": "*"} if new else {}


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
