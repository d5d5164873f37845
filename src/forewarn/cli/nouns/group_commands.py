"""`forewarn group`: show whom events are delivered to."""

from typing import Annotated

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import path_of
from forewarn.cli.options.shared_options import name_argument
from forewarn.cli.session import Noun, Session
from forewarn.wire.answers.fleet_answers import GroupAnswer

app = Noun()

LIST = terminal.ItemTable[GroupAnswer](
    columns={
        "GROUP": lambda group: group.name,
        "KIND": lambda group: group.kind,
        "UPDATE DOMAINS": lambda group: group.update_domains,
        "PROJECT": lambda group: group.project,
        "ENABLED": lambda group: group.enabled,
        "INCARNATION": lambda group: group.incarnation,
    },
    spare=("INCARNATION", "PROJECT"),
    empty="No groups.",
)


@app.command("list")
def list_(session: Session) -> None:
    """List groups."""
    reply = session.client.all(GroupAnswer, **session.scope)
    session.print_reply(reply, lambda page: LIST.print(page.items))


@app.command()
def show(session: Session, name: Annotated[str, name_argument("GROUP", "groups")]) -> None:
    """Show a group."""
    reply = session.client.get(path_of("group", name), GroupAnswer)
    session.print_reply(
        reply, lambda group: terminal.details_of(group, policy=formatting.policy(group.policy))
    )
