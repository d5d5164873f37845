"""Arguments and options of several commands: names, ids, reasons, and times as people type them."""

from typing import Annotated, Any

import typer

from forewarn.cli.options.completion import ids, names
from forewarn.core.moments import EXPECTED_SPAN, parse_span

Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the records.")]
Deadline = Annotated[
    str | None,
    typer.Option(
        "--deadline", metavar="TIME", help="From then on windows give way; as 2026-01-31T12:00:00Z."
    ),
]
Takes = Annotated[
    str | None,
    typer.Option(
        "--takes", metavar="DURATION", help="How long a host is expected to take, where windows bind it."
    ),
]
Driver = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Who does the work, as `forewarn driver list` names them; else as each host declares it.",
        show_default=False,
        autocompletion=names("drivers"),
    ),
]
Evacuate = Annotated[
    bool, typer.Option("--evacuate", help="Machines that can leave do so first; the default.")
]
InPlace = Annotated[bool, typer.Option("--in-place", help="All machines restart with the host.")]
Returning = Annotated[
    bool, typer.Option("--return", help="Those that left come back afterwards, with notice of its own.")
]
HostWork = Annotated[
    str | None,
    typer.Option(
        "--host-work",
        metavar="NAME",
        help="Who works on the host itself, as `forewarn driver list` names them.",
        autocompletion=names("drivers"),
    ),
]
Together = Annotated[
    str | None,
    typer.Option(
        "--together",
        metavar="REASON",
        help="Do a host in one go though it carries two update domains of a group; a broken promise.",
    ),
]
Whole = Annotated[
    bool,
    typer.Option("--whole", help="Do a host in one go; refused if it carries two update domains of a group."),
]
Heartbeat = Annotated[
    str | None,
    typer.Option(
        "--heartbeat", metavar="DURATION", help="How long an external driver may be silent. Else 10m."
    ),
]


OnlyNew = Annotated[
    bool, typer.Option("--new", help="Only add it: refused if one of this name exists, which stays as it is.")
]


def only_new_headers(new: bool) -> dict[str, str]:
    """Return the headers of a PUT that may be told to change nothing that exists."""
    return {"If-None-Match": "*"} if new else {}


def name_argument(metavar: str, completed_by: str | None = None) -> Any:
    """Make the argument that names one thing; the shell completes it by a list of the server."""
    completion = names(completed_by) if completed_by else None
    return typer.Argument(metavar=metavar, autocompletion=completion)


def id_argument(metavar: str, help_: str = "Its id, or how it begins.") -> Any:
    """Make the argument that is the id of one thing; the shell completes those that are listed."""
    listed = f"{metavar.strip('[]').lower()}s"
    return typer.Argument(metavar=metavar, help=help_, autocompletion=ids(listed))


OfMachine = Annotated[
    str | None,
    typer.Option("--machine", metavar="NAME", help="Only of this machine.", autocompletion=names("machines")),
]
OfHost = Annotated[
    str | None,
    typer.Option("--host", metavar="HOST", help="Only of this host.", autocompletion=names("hosts")),
]
HostArgument = Annotated[str, name_argument("HOST", "hosts")]
MachineArgument = Annotated[str, name_argument("MACHINE", "machines")]
OrderArgument = Annotated[str, id_argument("ORDER")]


def service_mode(*, evacuate: bool, in_place: bool, returning: bool) -> dict[str, Any]:
    """Return what becomes of the machines of a host that is worked on itself, as it is sent."""
    if evacuate and in_place:
        raise typer.BadParameter("say --evacuate or --in-place, not both")
    if returning and in_place:
        raise typer.BadParameter("--in-place moves no machine, so that none can --return")
    mode = "in-place" if in_place else "evacuate" if evacuate else None
    return {"mode": mode, "returning": returning or None}


def seconds(text: str, *, hint: str) -> float:
    """Read a time such as `90`, `15m` or `7d`; `hint` names where it was typed."""
    try:
        return parse_span(text).total_seconds()
    except ValueError:
        raise typer.BadParameter(f"{EXPECTED_SPAN}, got {text!r}", param_hint=hint) from None


def seconds_or_none(text: str | None, *, hint: str) -> float | None:
    """Read a time, if one was typed."""
    return None if text is None else seconds(text, hint=hint)
