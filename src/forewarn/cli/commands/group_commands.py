"""`forewarn group`: show and declare the groups that receive events together."""

from typing import Any

from forewarn.cli import formatting, options, terminal
from forewarn.cli.command_group import option
from forewarn.cli.session import Noun, Session
from forewarn.client.replies import given
from forewarn.wire.answers.fleet_answers import GroupAnswer

app = Noun()

GROUP = options.name_argument("GROUP")

LIST = terminal.ItemTable[GroupAnswer](
    columns={
        **terminal.columns("GROUP=name KIND UPDATE-DOMAINS PROJECT ENABLED INCARNATION SOURCE"),
    },
    spare=("INCARNATION", "PROJECT", "SOURCE"),
    spare_if_same=("SOURCE",),
    empty="No groups.",
)


@app.verb()
def list_(session: Session) -> None:
    """List groups."""
    reply = session.client.all(GroupAnswer, **session.scope)
    session.print_reply(reply, lambda page: LIST.print(page.items))


@app.verb(GROUP)
def show(session: Session, name: str) -> None:
    """Show a group."""
    session.print_reply(session.client.get(options.path_of("group", name), GroupAnswer), _show)


@app.verb(
    GROUP,
    option("--kind", "KIND", "cloud-service, availability-set or scale-set."),
    option("--update-domains", "N", "The number of update domains.", type=int),
    option(
        "--policy",
        "KEY=VALUE",
        "A key of the policy, such as notice=1h; notice= clears it. Repeatable.",
        multiple=True,
    ),
    options.ONLY_NEW,
)
def put(session: Session, name: str, policy: tuple[str, ...], new: bool, **typed: Any) -> None:
    """Add a group to the project of --project, or change the given fields of one."""
    asked = {
        key.replace("-", "_"): options.scalar(value) if value else None
        for key, value in options.pairs(policy, "--policy").items()
    }
    body = given({**typed, "policy": asked or None, **session.scope})
    reply = options.put_in_fleet(session, "group", name, GroupAnswer, body, new=new)
    session.print_reply(reply, _show)


@app.verb(GROUP)
def delete(session: Session, name: str) -> None:
    """Remove a group without machines from the fleet."""
    options.delete_from_fleet(session, "group", name, GroupAnswer)


def _show(group: GroupAnswer) -> None:
    terminal.details_of(group, policy=formatting.policy(group.policy))
