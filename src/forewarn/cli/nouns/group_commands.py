"""`forewarn group`: show whom events are delivered to, and declare it."""

from typing import Annotated

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import path_of
from forewarn.cli.options.machine_options import pairs, plain
from forewarn.cli.options.shared_options import OnlyNew, name_argument, only_new_headers
from forewarn.cli.session import Noun, Session
from forewarn.client.replies import given
from forewarn.wire.answers.fleet_answers import GroupAnswer

app = Noun()

GroupArgument = Annotated[str, name_argument("GROUP", "groups")]

LIST = terminal.ItemTable[GroupAnswer](
    columns={
        "GROUP": lambda group: group.name,
        "KIND": lambda group: group.kind,
        "UPDATE DOMAINS": lambda group: group.update_domains,
        "PROJECT": lambda group: group.project,
        "ENABLED": lambda group: group.enabled,
        "INCARNATION": lambda group: group.incarnation,
        "SOURCE": lambda group: group.source,
    },
    spare=("INCARNATION", "PROJECT", "SOURCE"),
    spare_if_same=("SOURCE",),
    empty="No groups.",
)


@app.command("list")
def list_(session: Session) -> None:
    """List groups."""
    reply = session.client.all(GroupAnswer, **session.scope)
    session.print_reply(reply, lambda page: LIST.print(page.items))


@app.command()
def show(session: Session, name: GroupArgument) -> None:
    """Show a group."""
    session.print_reply(session.client.get(path_of("group", name), GroupAnswer), _show)


@app.command()
def put(
    session: Session,
    name: GroupArgument,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="cloud-service, availability-set or scale-set.")
    ] = None,
    update_domains: Annotated[int | None, typer.Option(metavar="N", help="How many it has.")] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="What it asks for, as notice=1h; notice= clears it; may be repeated."
        ),
    ] = None,
    new: OnlyNew = False,
) -> None:
    """Add a group, or change what is given of one; --project says whose it is."""
    asked = {
        key.replace("-", "_"): plain(value) if value else None
        for key, value in pairs(policy, "--policy").items()
    }
    body = given({"kind": kind, "update_domains": update_domains, "policy": asked or None, **session.scope})
    headers = only_new_headers(new)
    reply = session.client.call("PUT", path_of("group", name), GroupAnswer, body=body, headers=headers)
    session.print_reply(reply, _show)


@app.command()
def delete(session: Session, name: GroupArgument) -> None:
    """Take a group without machines out of the fleet."""
    reply = session.client.call("DELETE", path_of("group", name), GroupAnswer)
    session.print_reply(reply, lambda group: terminal.echo(f"{group.name} is no longer in the fleet."))


def _show(group: GroupAnswer) -> None:
    terminal.details_of(group, policy=formatting.policy(group.policy))
