"""`forewarn machine`: show machines, declare them, and order something to be done to one."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.confirmation import confirm
from forewarn.cli.id_lookup import path_of
from forewarn.cli.options import completion
from forewarn.cli.options.machine_options import with_declaration
from forewarn.cli.options.shared_options import MachineArgument, OnlyNew, Reason, only_new_headers
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.order_view import show_order_on_machine
from forewarn.core.catalogue import ON_MACHINES
from forewarn.core.words import Action
from forewarn.wire.answers.fleet_answers import MachineAnswer
from forewarn.wire.answers.order_answers import OrderOnMachineAnswer

app = Noun()

Now = Annotated[bool, typer.Option("--now", help="Do not wait for its guests: it is wedged.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; needed where nobody can be asked.")]


@app.command("list")
def list_(
    session: Session,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MACHINE]...", help="Only of these names.", autocompletion=completion.names("machines")
        ),
    ] = None,
    group: Annotated[str | None, typer.Option(metavar="GROUP", help="Only of this group.")] = None,
    host: Annotated[str | None, typer.Option(metavar="HOST", help="Only on this host.")] = None,
    begins: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those whose names begin so, in any case.")
    ] = None,
    contains: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only those with this in name, address or vm-id, in any case."),
    ] = None,
) -> None:
    """List machines."""
    wanted = {"name": names, "begins": begins, "contains": contains, "group": group, "host": host}
    wanted |= session.scope
    reply = session.client.all(MachineAnswer, **wanted)
    none = "No machines: `forewarn fleet apply FILE` declares a fleet."
    empty = formatting.none_found("machines", none, **wanted)
    session.print_reply(reply, lambda page: _show_list(session, page.items, empty=empty))


@app.command()
def show(session: Session, name: MachineArgument) -> None:
    """Show a machine."""
    session.print_reply(
        session.client.get(path_of("machine", name), MachineAnswer, **session.scope), terminal.details_of
    )


@app.command()
@with_declaration
def put(session: Session, name: MachineArgument, body: dict[str, Any], *, new: OnlyNew = False) -> None:
    """Add a machine, or change what is given of one."""
    reply = session.client.call(
        "PUT",
        path_of("machine", name),
        MachineAnswer,
        body=body,
        params=session.scope,
        headers=only_new_headers(new),
    )
    session.print_reply(reply, terminal.details_of)


@app.command()
def delete(session: Session, name: MachineArgument, yes: Yes = False) -> None:
    """Take a machine out of the fleet, without notice to anybody."""
    question = f"Take {name} out of the fleet, without notice to anybody? (`machine terminate` gives notice.)"
    would = f"take {name} out of the fleet without notice to anybody (`machine terminate` gives notice)"
    confirm(question, would=would, yes=yes)
    reply = session.client.call("DELETE", path_of("machine", name), MachineAnswer, params=session.scope)
    session.print_reply(reply, lambda machine: terminal.echo(f"{machine.name} is no longer in the fleet."))


@app.command()
def restart(session: Session, name: MachineArgument, reason: Reason = None, now: Now = False) -> None:
    """Restart a machine."""
    _order(session, name, "restart", reason, now=now)


def _add_order(action: Action, about: str) -> None:
    @app.command(action.value, help=f"{about}.")
    def order(session: Session, name: MachineArgument, reason: Reason = None) -> None:
        _order(session, name, action.value, reason)


for _action, _facts in ON_MACHINES.items():
    if _action not in (Action.RESTART, Action.MOVE):  # which have options of their own
        _add_order(_action, _facts.about)


@app.command()
def move(
    session: Session,
    name: MachineArgument,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Where it goes; if omitted, the best host.",
            autocompletion=completion.names("hosts"),
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="While it runs: a Freeze of seconds. Otherwise a Redeploy.")
    ] = False,
    reason: Reason = None,
) -> None:
    """Move a machine with notice, to a host of your choice or while it runs."""
    _post_order(session, name, Action.MOVE, {"to": to, "live": live, "reason": reason or ""})


def _order(session: Session, name: str, action: str, reason: str | None, *, now: bool = False) -> None:
    _post_order(session, name, action, {"reason": reason or "", "now": now})


def _post_order(session: Session, name: str, action: str, body: dict[str, Any]) -> None:
    reply = session.client.post(
        f"{path_of('machine', name)}/{action}", OrderOnMachineAnswer, body, **session.scope
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
