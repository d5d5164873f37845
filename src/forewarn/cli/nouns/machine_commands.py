"""`forewarn machine`: show machines, declare them, and order something to be done to one."""

from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.confirmation import confirm
from forewarn.cli.id_lookup import quoted_name
from forewarn.cli.options.machine_options import with_declaration
from forewarn.cli.options.shared_options import MachineArgument, Reason
from forewarn.cli.session import Session, noun, with_session
from forewarn.cli.views.order_view import show_order_on_machine

app = noun("Show machines, and order something to be done to one.")

Now = Annotated[bool, typer.Option("--now", help="Do not wait for its guests: it is wedged.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; needed where nobody can be asked.")]

LIST = terminal.TableLayout(
    columns=(
        "MACHINE",
        "STATE",
        "HOST",
        "GROUP",
        "UD",
        "FD",
        "PRIORITY",
        "ADDRESS",
        "PORT",
        "ENABLED",
        "LAST SEEN",
    ),
    spare=("FD", "PORT", "PRIORITY", "ADDRESS", "LAST SEEN"),
)


@app.command("list")
@with_session
def list_(
    session: Session,
    group: Annotated[str | None, typer.Option(metavar="GROUP", help="Only of this group.")] = None,
    host: Annotated[str | None, typer.Option(metavar="HOST", help="Only on this host.")] = None,
) -> None:
    """List machines."""
    answer = session.client.all("machines", **session.scope, group=group, host=host)
    session.print_answer(answer, lambda: _show_list(session, answer["machines"]))


@app.command()
@with_session
def show(session: Session, name: MachineArgument) -> None:
    """Show a machine."""
    answer = session.client.get(f"/v1/machines/{quoted_name('machine', name)}", **session.scope)
    session.print_answer(answer, lambda: _show(answer["machine"]))


@app.command()
@with_session
@with_declaration
def put(session: Session, name: MachineArgument, body: dict[str, Any]) -> None:
    """Add a machine, or change what is given of one."""
    answer = session.client.call(
        "PUT", f"/v1/machines/{quoted_name('machine', name)}", body=body, params=session.scope
    )
    session.print_answer(answer, lambda: _show(answer["machine"]))


@app.command()
@with_session
def delete(session: Session, name: MachineArgument, yes: Yes = False) -> None:
    """Take a machine out of the fleet, without notice to anybody."""
    question = f"Take {name} out of the fleet, without notice to anybody? (`machine terminate` gives notice.)"
    would = f"take {name} out of the fleet without notice to anybody (`machine terminate` gives notice)"
    confirm(question, would=would, yes=yes)
    answer = session.client.call(
        "DELETE", f"/v1/machines/{quoted_name('machine', name)}", params=session.scope
    )
    session.print_answer(
        answer, lambda: terminal.echo(f"{answer['machine']['name']} is no longer in the fleet.")
    )


@app.command()
@with_session
def restart(session: Session, name: MachineArgument, reason: Reason = None, now: Now = False) -> None:
    """Restart a machine."""
    _order(session, name, "restart", reason, now=now)


def _add_order(action: str, about: str) -> None:
    @app.command(action, help=about)
    @with_session
    def order(session: Session, name: MachineArgument, reason: Reason = None) -> None:
        _order(session, name, action, reason)


for _action, _about in {
    "redeploy": "Move a machine to another host.",
    "freeze": "Pause a machine for seconds.",
    "evict": "Evict a spot machine; `start` brings it back.",
    "terminate": "Delete a machine, after notice.",
    "start": "Start a machine that was evicted.",
}.items():
    _add_order(_action, _about)


def _order(session: Session, name: str, action: str, reason: str | None, *, now: bool = False) -> None:
    body = {"reason": reason or "", "now": now}
    answer = session.client.post(
        f"/v1/machines/{quoted_name('machine', name)}/{action}", body, **session.scope
    )
    session.print_answer(answer, lambda: show_order_on_machine(session, answer))


def _show_list(session: Session, machines: list[dict[str, Any]]) -> None:
    now = session.client.get("/v1/clock")["now"] if machines else ""
    rows = (
        (
            each["name"],
            each["state"],
            each["host"],
            each["group"],
            each["update_domain"],
            each["fault_domain"],
            each["priority"],
            each["address"],
            each["port"],
            each["enabled"],
            formatting.countdown(each["last_seen"], now) if each["last_seen"] else None,
        )
        for each in machines
    )
    terminal.table(LIST, rows, empty="No machines: `forewarn fleet apply FILE` declares a fleet.")


def _show(machine: dict[str, Any]) -> None:
    shown = {**machine, "last_seen": formatting.at(machine["last_seen"])}
    terminal.details((key.replace("_", " "), value) for key, value in shown.items())
