"""`forewarn machine`: show machines, declare them, and order something to be done to one."""

from collections.abc import Sequence
from typing import Any

import click

from forewarn.cli import formatting, options, terminal
from forewarn.cli.command_group import argument, flag, option
from forewarn.cli.completion import names
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.order_view import show_order_on_machine
from forewarn.cli.views.questions import confirm
from forewarn.client.replies import given
from forewarn.core.basic_types import Action
from forewarn.core.catalogue import ON_MACHINES
from forewarn.wire.answers.fleet_answers import MachineAnswer
from forewarn.wire.answers.order_answers import OrderOnMachineAnswer
from forewarn.wire.fields import Field
from forewarn.wire.fleet import MACHINE as FIELDS

# Said by the command's argument, and by --project.
_SAID_ELSEWHERE = {"name", "project"}
# What stands for the value, where neither N nor TEXT says enough.
_METAVARS = {
    "host": "HOST",
    "group": "GROUP",
    "priority": "WORD",
    "mobility": "WORD",
    "address": "IP",
    "mac": "MAC",
    "port": "PORT",
    "vm_id": "UUID",
}
_COMPLETED = {"host": names("hosts"), "group": names("groups")}


def declaration(
    *, tag: tuple[str, ...], label: tuple[str, ...], resource: tuple[str, ...], **typed: Any
) -> dict[str, Any]:
    """Make what is sent of the options of a machine."""
    amounts = {name: options.number(value) for name, value in options.pairs(resource, "--resource").items()}
    given_pairs = {
        "tags": options.pairs(tag, "--tag"),
        "labels": options.pairs(label, "--label"),
        "resources": amounts,
    }
    return given({**typed, **{name: values or None for name, values in given_pairs.items()}})


# The fields that are typed pair by pair.
_PAIRS = {
    "tags": option("--tag", "NAME=VALUE", "May be repeated.", multiple=True),
    "labels": option("--label", "NAME=VALUE", "What it asks of its host; may be repeated.", multiple=True),
    "resources": option(
        "--resource", "NAME=NUMBER", "What it takes of its host; may be repeated.", multiple=True
    ),
}


def _option(name: str, field: Field[Any]) -> click.Option:
    of = field.schema.get("anyOf", [field.schema])[0]["type"]
    kind, metavar = (int, "N") if of == "integer" else (str, "TEXT")
    return option(
        f"--{name.replace('_', '-')}",
        _METAVARS.get(name, metavar),
        field.schema.get("description", ""),
        type=kind,
        shell_complete=_COMPLETED.get(name),
    )


DECLARATION = tuple(
    _PAIRS.get(name) or _option(name, field) for name, field in FIELDS.items() if name not in _SAID_ELSEWHERE
)

app = Noun()

NOW = flag("--now", "Do not wait for its guests: it is wedged.")
YES = flag("--yes", "Do not ask; needed where nobody can be asked.")


@app.verb(
    argument("names", "[MACHINE]...", "Only of these names.", nargs=-1, shell_complete=names("machines")),
    option("--group", "GROUP", "Only of this group."),
    option("--host", "HOST", "Only on this host."),
    option("--begins", "TEXT", "Only those whose names begin so, in any case."),
    option("--contains", "TEXT", "Only those with this in name, address or vm-id, in any case."),
)
def list_(
    session: Session,
    names: tuple[str, ...],
    group: str | None,
    host: str | None,
    begins: str | None,
    contains: str | None,
) -> None:
    """List machines."""
    wanted = {"name": names, "begins": begins, "contains": contains, "group": group, "host": host}
    wanted |= session.scope
    reply = session.client.all(MachineAnswer, **wanted)
    none = "No machines: `forewarn fleet apply FILE` declares a fleet."
    empty = formatting.none_found("machines", none, **wanted)
    session.print_reply(reply, lambda page: _show_list(session, page.items, empty=empty))


@app.verb(options.MACHINE)
def show(session: Session, name: str) -> None:
    """Show a machine."""
    session.print_reply(
        session.client.get(options.path_of("machine", name), MachineAnswer, **session.scope),
        terminal.details_of,
    )


@app.verb(options.MACHINE, *DECLARATION, options.ONLY_NEW)
def put(session: Session, name: str, new: bool, **typed: Any) -> None:
    """Add a machine, or change what is given of one."""
    body = declaration(**typed)
    reply = options.put_in_fleet(session, "machine", name, MachineAnswer, body, new=new, **session.scope)
    session.print_reply(reply, terminal.details_of)


@app.verb(options.MACHINE, YES)
def delete(session: Session, name: str, yes: bool) -> None:
    """Take a machine out of the fleet, without notice to anybody."""
    question = f"Take {name} out of the fleet, without notice to anybody? (`machine terminate` gives notice.)"
    would = f"take {name} out of the fleet without notice to anybody (`machine terminate` gives notice)"
    confirm(question, would=would, yes=yes)
    options.delete_from_fleet(session, "machine", name, MachineAnswer, **session.scope)


@app.verb(options.MACHINE, options.REASON, NOW)
def restart(session: Session, name: str, reason: str | None, now: bool) -> None:
    """Restart a machine."""
    _order(session, name, "restart", reason, now=now)


def _add_order(action: Action, about: str) -> None:
    @app.verb(options.MACHINE, options.REASON, about=f"{about}.", name=action.value)
    def order(session: Session, name: str, reason: str | None) -> None:
        _order(session, name, action.value, reason)


for _action, _facts in ON_MACHINES.items():
    if _action not in (Action.RESTART, Action.MOVE):  # which have options of their own
        _add_order(_action, _facts.about)


@app.verb(
    options.MACHINE,
    option("--to", "HOST", "Where it goes; if omitted, the best host.", shell_complete=names("hosts")),
    flag("--live", "While it runs: a Freeze of seconds. Otherwise a Redeploy."),
    options.REASON,
)
def move(session: Session, name: str, to: str | None, live: bool, reason: str | None) -> None:
    """Move a machine with notice, to a host of your choice or while it runs."""
    _post_order(session, name, Action.MOVE, {"to": to, "live": live, "reason": reason or ""})


def _order(session: Session, name: str, action: str, reason: str | None, *, now: bool = False) -> None:
    _post_order(session, name, action, {"reason": reason or "", "now": now})


def _post_order(session: Session, name: str, action: str, body: dict[str, Any]) -> None:
    reply = session.client.post(
        f"{options.path_of('machine', name)}/{action}", OrderOnMachineAnswer, body, **session.scope
    )
    session.print_reply(reply, lambda placed: show_order_on_machine(session, placed))


def _show_list(session: Session, machines: Sequence[MachineAnswer], *, empty: str) -> None:
    now = session.now()
    table = terminal.ItemTable[MachineAnswer](
        columns={
            "MACHINE": lambda machine: machine.name,
            "STATE": lambda machine: machine.state,
            "HOST": lambda machine: machine.host,
            "GROUP": lambda machine: machine.group,
            "PROJECT": lambda machine: machine.project,
            "UD": lambda machine: machine.update_domain,
            "FD": lambda machine: machine.fault_domain,
            "PRIORITY": lambda machine: machine.priority,
            "ADDRESS": lambda machine: machine.address,
            "PORT": lambda machine: machine.port,
            "ENABLED": lambda machine: machine.enabled,
            "SOURCE": lambda machine: machine.source,
            "LAST SEEN": lambda machine: machine.last_seen and formatting.countdown(machine.last_seen, now),
        },
        spare=("FD", "PORT", "PRIORITY", "ADDRESS", "LAST SEEN", "SOURCE"),
        spare_if_same=("PROJECT", "SOURCE"),
        empty=empty,
    )
    table.print(machines)
