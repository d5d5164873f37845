"""`forewarn hold`: stop new work for a while, and stop work that is under way.

`forewarn hold --reason …`, `holds` and `release` are the earlier names of `hold set`, `list` and `release`.
"""

from collections.abc import Sequence

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import WrongUsage, flag, option
from forewarn.cli.options import full_id, id_argument
from forewarn.cli.session import EVERYWHERE, Noun, Session
from forewarn.client.replies import RequestRefused
from forewarn.wire.answers.service_answers import HoldAnswer

ID = id_argument("[HOLD]", "The id, or a prefix. Default: the only hold.")
ON_HOST = option("--host", "HOST", "The hold on this host.")


def _parameters(*, hidden: bool) -> tuple[click.Option, ...]:
    return (
        option(
            "--reason",
            "TEXT",
            "The reason, shown with all work that waits.",
            required=not hidden,
            hidden=hidden,
        ),
        option("--host", "HOST", "Only on this host.", hidden=hidden),
        flag("--abort", "Cancel running work too, where possible; name the rest.", hidden=hidden),
    )


LIST = terminal.ItemTable[HoldAnswer](
    columns={
        "HOLD": lambda hold: terminal.short(hold.id),
        **terminal.columns("REACH BY SINCE=at"),
        "WHY": lambda hold: hold.reason + _unsaved(hold),
    },
    wraps=("WHY",),
    empty="No holds.",
)


def hold(session: Session, reason: str | None, host: str | None, abort: bool) -> None:
    """Set a hold: `forewarn hold` is the earlier name of `forewarn hold set`."""
    if reason is None:
        raise WrongUsage("--reason", "is required")
    _set(session, reason=reason, host=host, abort=abort)


app = Noun([*_parameters(hidden=True), *EVERYWHERE], alone=hold)


@app.verb(*_parameters(hidden=False))
def set_(session: Session, reason: str, host: str | None, abort: bool) -> None:
    """Announce and start nothing new in the fleet, in a project (--project) or on a host.

    While the server cannot save a hold, it obeys it from memory, and the answer says so.
    """
    _set(session, reason=reason, host=host, abort=abort)


def _set(session: Session, **typed: object) -> None:
    reply = session.client.post("/v1/holds", HoldAnswer, {**typed, "project": session.project})
    session.print_reply(reply, lambda hold: _show_set(session, hold))


@app.verb(ID, ON_HOST)
def release(session: Session, id_: str | None, host: str | None) -> None:
    """Release a hold, by its id or by what it holds (--project, --host); waiting work continues."""
    if id_ and (host or session.project):
        raise WrongUsage("HOLD", "use an id alone, or --project and --host")
    wanted = full_id(session.client, HoldAnswer, id_) if id_ else _only(session, host)
    reply = session.client.post(f"/v1/holds/{wanted}/release", HoldAnswer)
    session.print_reply(reply, lambda hold: terminal.echo(f"Hold on {hold.reach} released."))


@app.verb(name="list")
def holds(session: Session) -> None:
    """List the holds in force, with their reasons."""
    session.print_reply(session.client.page(HoldAnswer), lambda page: _show_list(page.items))


def _show_list(held: Sequence[HoldAnswer]) -> None:
    LIST.print(held)
    for each in held:
        _show_still_running(each)


def _unsaved(hold: HoldAnswer) -> str:
    if hold.refused is not None:
        release = f"forewarn hold release {terminal.short(hold.id)}"
        return f" (NOT in force: {hold.refused}; `{release}` removes it from this list)"
    return "" if hold.saved else " (in memory only)"


def _show_set(session: Session, hold: HoldAnswer) -> None:
    terminal.echo(
        f"Hold set on {hold.reach}. Nothing new is announced or started; polls and approvals continue."
    )
    if hold.abort and hold.saved:
        if not hold.still_running:
            terminal.echo("All running work is cancelled.")
        _show_still_running(hold)
    if hold.note is not None:
        terminal.echo(f"  {hold.note[0].upper()}{hold.note[1:]}.")
    terminal.echo_steps({"Release": session.command(f"hold release {hold.id}")})


def _show_still_running(hold: HoldAnswer) -> None:
    """Show the work that a hold could not cancel, or has not cancelled yet."""
    for each in sorted(hold.still_running, key=lambda each: not each.too_late):
        state = "can no longer be cancelled" if each.too_late else "is being cancelled"
        why = f" ({each.why})" if each.why else ""
        where = f" on {each.host}" if each.host else ""
        terminal.echo(
            f"  {each.machine or f'the {each.task}'}{where} {state}{why}: order {terminal.short(each.order)}"
        )


def _only(session: Session, host: str | None) -> str:
    """Return the id of the hold on a project or a host; without either, of the only hold."""
    held = [each for each in session.client.page(HoldAnswer).value.items if each.refused is None]
    named = {"project": session.project, "host": host}
    found = [each for each in held if (each.project, each.host) == (session.project, host)]
    if not any(named.values()):
        found = held
    if len(found) == 1:
        return found[0].id
    if found:
        raise RequestRefused(
            "several holds are in force; give an id, --project or --host (`forewarn hold list` shows them)"
        )
    if not held:
        raise RequestRefused("no hold is in force")
    where = " and ".join(f"{what} {name}" for what, name in named.items() if name)
    raise RequestRefused(f"there is no hold on {where}; `forewarn hold list` shows all holds")
