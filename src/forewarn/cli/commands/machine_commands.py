"""`forewarn machine`: show and declare machines, and order work on them."""

from collections.abc import Sequence
from typing import Any

import click

from forewarn.cli import formatting, options, terminal
from forewarn.cli.command_group import argument, flag, option
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.confirmation import SURE, confirm
from forewarn.cli.views.order_view import show_order_on_machine
from forewarn.client.replies import given
from forewarn.core.basic_types import Action
from forewarn.core.catalogue import ON_MACHINES
from forewarn.wire.answers.fleet_answers import MachineAnswer
from forewarn.wire.answers.order_answers import OrderOnMachineAnswer
from forewarn.wire.fields import Field
from forewarn.wire.fleet import MACHINE as FIELDS

# The command's argument and --project set these fields.
_SET_ELSEWHERE = {"name", "project"}
# The placeholders of values, if neither N nor TEXT is clear enough.
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
_PAIRS = {
    "tags": option(
        "--tag tags", "NAME=VALUE", "A tag, as instance metadata shows it. Repeatable.", multiple=True
    ),
    "labels": option(
        "--label labels", "NAME=VALUE", "A label that its host must have. Repeatable.", multiple=True
    ),
    "resources": option(
        "--resource resources",
        "NAME=NUMBER",
        "A resource that it takes of its host. Repeatable.",
        multiple=True,
    ),
}


def _option(name: str, field: Field[Any]) -> click.Option:
    of = field.schema.get("anyOf", [field.schema])[0]["type"]
    kind, metavar = (int, "N") if of == "integer" else (str, "TEXT")
    return option(
        f"--{name.replace('_', '-')}",
        _METAVARS.get(name, metavar),
        field.schema.get("description", f"The {name.replace('_', ' ')} of the machine."),
        type=kind,
    )


DECLARATION = tuple(
    _PAIRS.get(name) or _option(name, field) for name, field in FIELDS.items() if name not in _SET_ELSEWHERE
)

app = Noun()


@app.verb(
    argument("names", "[MACHINE]...", "Only these machines.", nargs=-1),
    option("--group", "GROUP", "Only of this group."),
    option("--host", "HOST", "Only on this host."),
    option("--begins", "TEXT", "Only names that begin so, in any case."),
    option("--contains", "TEXT", "Only those with this text in name, address or vm-id, in any case."),
)
def list_(session: Session, names: tuple[str, ...], **typed: str | None) -> None:
    """List machines."""
    wanted = {"name": names, **typed, **session.scope}
    reply = session.client.all(MachineAnswer, **wanted)
    none = "No machines: `forewarn fleet apply FILE` declares a fleet."
    empty = formatting.none_found("machines", none, **wanted)
    session.print_reply(reply, lambda page: _show_list(session, page.items, empty=empty))


@app.verb(options.MACHINE)
def show(session: Session, name: str) -> None:
    """Show a machine."""
    reply = session.client.get(options.path_of("machine", name), MachineAnswer, **session.scope)
    session.print_reply(reply, terminal.details_of)


@app.verb(options.MACHINE, *DECLARATION, options.ONLY_NEW)
def put(session: Session, name: str, new: bool, **typed: Any) -> None:
    """Add a machine, or change the given fields of one."""
    flags = {"tags": "--tag", "labels": "--label", "resources": "--resource"}
    typed |= {field: options.pairs(typed[field], shown) or None for field, shown in flags.items()}
    if typed["resources"]:
        typed["resources"] = {key: options.amount(value) for key, value in typed["resources"].items()}
    reply = options.put_in_fleet(
        session, "machine", name, MachineAnswer, given(typed), new=new, **session.scope
    )
    session.print_reply(reply, terminal.details_of)


@app.verb(options.MACHINE, SURE)
def delete(session: Session, name: str, yes: bool) -> None:
    """Remove a machine from the fleet without notice to its guests."""
    what = f"remove {name} from the fleet without notice"
    confirm(
        f"{what.capitalize()}? (`machine terminate` gives notice.)",
        would=f"{what} (`machine terminate` gives notice)",
        yes=yes,
    )
    options.delete_from_fleet(session, "machine", name, MachineAnswer, **session.scope)


@app.verb(options.MACHINE, options.REASON, flag("--now", "Do not wait for the guests: the machine hangs."))
def restart(session: Session, name: str, **body: Any) -> None:
    """Restart a machine."""
    _order(session, name, Action.RESTART, body)


def _add_order(action: Action, about: str) -> None:
    @app.verb(options.MACHINE, options.REASON, about=f"{about}.", name=action.value)
    def order(session: Session, name: str, **body: Any) -> None:
        _order(session, name, action, body)


for _action, _facts in ON_MACHINES.items():
    if _action not in (Action.RESTART, Action.MOVE):  # these have options of their own
        _add_order(_action, _facts.about)


@app.verb(
    options.MACHINE,
    option("--to", "HOST", "The target. Default: the best host."),
    flag("--live", "Move the running machine: a Freeze of seconds. Otherwise a Redeploy."),
    options.REASON,
)
def move(session: Session, name: str, **body: Any) -> None:
    """Move a machine with notice, to a host of your choice or while it runs."""
    _order(session, name, Action.MOVE, body)


def _order(session: Session, name: str, action: Action, body: dict[str, Any]) -> None:
    path = f"{options.path_of('machine', name)}/{action}"
    reply = session.client.post(path, OrderOnMachineAnswer, body, **session.scope)
    session.print_reply(reply, lambda placed: show_order_on_machine(session, placed))


def _show_list(session: Session, machines: Sequence[MachineAnswer], *, empty: str) -> None:
    now = session.now()
    table = terminal.ItemTable[MachineAnswer](
        columns={
            **terminal.columns(
                "MACHINE=name STATE HOST GROUP PROJECT UD=update_domain FD=fault_domain PRIORITY "
                "ADDRESS PORT ENABLED SOURCE"
            ),
            "LAST SEEN": lambda machine: machine.last_seen and formatting.countdown(machine.last_seen, now),
        },
        spare=("FD", "PORT", "PRIORITY", "ADDRESS", "LAST SEEN", "SOURCE"),
        spare_if_same=("PROJECT", "SOURCE"),
        empty=empty,
    )
    table.print(machines)
