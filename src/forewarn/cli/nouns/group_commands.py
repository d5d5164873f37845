"""`forewarn group`: show whom events are delivered to."""

from typing import Annotated, Any

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import quoted_name
from forewarn.cli.options.shared_options import name_argument
from forewarn.cli.session import Session, noun, with_session

app = noun("Show whom events are delivered to.")

LIST = terminal.TableLayout(
    columns=("GROUP", "KIND", "UPDATE DOMAINS", "PROJECT", "ENABLED", "INCARNATION"),
    spare=("INCARNATION", "PROJECT"),
)


@app.command("list")
@with_session
def list_(session: Session) -> None:
    """List groups."""
    answer = session.client.all("groups", **session.scope)
    rows = (_row(each) for each in answer["groups"])
    session.print_answer(answer, lambda: terminal.table(LIST, rows, empty="No groups."))


@app.command()
@with_session
def show(
    session: Session,
    name: Annotated[str, name_argument("GROUP", "groups")],
) -> None:
    """Show a group."""
    answer = session.client.get(f"/v1/groups/{quoted_name('group', name)}")
    session.print_answer(answer, lambda: _show(answer["group"]))


def _show(group: dict[str, Any]) -> None:
    told = {"enabled_at": formatting.at(group["enabled_at"]), "policy": formatting.policy(group["policy"])}
    terminal.details((key.replace("_", " "), value) for key, value in {**group, **told}.items())


def _row(group: dict[str, Any]) -> tuple[object, ...]:
    keys = ("name", "kind", "update_domains", "project", "enabled", "incarnation")
    return tuple(group[key] for key in keys)
