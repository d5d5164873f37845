"""`forewarn hold`: let nothing new be announced or started for a while, and stop what is under way.

`forewarn hold --reason …`, `holds` and `release` are what `hold set`, `list` and `release` were called first.
"""

from collections.abc import Sequence

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import flag, option
from forewarn.cli.completion import names
from forewarn.cli.options import full_id, id_argument
from forewarn.cli.session import EVERYWHERE, Noun, Session
from forewarn.client.replies import RequestRefused
from forewarn.wire.answers.service_answers import HoldAnswer

REASON = option("--reason", "TEXT", "Why, shown everywhere.", required=True)
HOST = option("--host", "HOST", "Only on this host.", shell_complete=names("hosts"))
HELD_HOST = option("--host", "HOST", "The hold on this host.", shell_complete=names("hosts"))
ID = id_argument("[HOLD]", "Its id; left out if there is only one.")

MAYBE_REASON = option("--reason", "TEXT", "Why, shown everywhere.", hidden=True)
MAYBE_HOST = option("--host", "HOST", "", hidden=True)
ABORT = flag("--abort", "Stop what is under way there too: what can be called off is, the rest is named.")

LIST = terminal.ItemTable[HoldAnswer](
    columns={
        "HOLD": lambda hold: terminal.short(hold.id),
        "REACH": lambda hold: hold.reach,
        "BY": lambda hold: hold.by,
        "SINCE": lambda hold: hold.at,
        "WHY": lambda hold: hold.reason + _standing(hold),
    },
    wraps=("WHY",),
    empty="Nothing is held.",
)


def hold(session: Session, reason: str | None, host: str | None, abort: bool) -> None:
    """Announce and start nothing new: anywhere, in a project (--project) or on a host."""
    if reason is None:
        raise click.BadParameter("say why: everybody is shown it", param_hint="--reason")
    _set(session, reason=reason, host=host, abort=abort)


app = Noun([MAYBE_REASON, MAYBE_HOST, flag("--abort", "", hidden=True), *EVERYWHERE], alone=hold)


@app.verb(REASON, HOST, ABORT)
def set_(session: Session, reason: str, host: str | None, abort: bool) -> None:
    """Announce and start nothing new: anywhere, in a project (--project) or on a host.

    While nothing can be saved it is kept in memory and obeyed, and the answer says so.
    """
    _set(session, reason=reason, host=host, abort=abort)


def _set(session: Session, *, reason: str, host: str | None, abort: bool) -> None:
    body = {"reason": reason, "project": session.project, "host": host, "abort": abort}
    session.print_reply(
        session.client.post("/v1/holds", HoldAnswer, body), lambda hold: _show_set(session, hold)
    )


@app.verb(ID, HELD_HOST)
def release(session: Session, id_: str | None, host: str | None) -> None:
    """Lift a hold, by its id or by what it holds (--project, --host); what waited for it goes on."""
    if id_ and (host or session.project):
        raise click.BadParameter("an id says all: leave --project and --host out", param_hint="HOLD")
    wanted = full_id(session.client, HoldAnswer, id_) if id_ else _only(session, host)
    reply = session.client.post(f"/v1/holds/{wanted}/release", HoldAnswer)
    session.print_reply(reply, lambda hold: terminal.echo(f"{hold.reach}: released."))


@app.verb(name="list")
def holds(session: Session) -> None:
    """List what is held, and why."""
    session.print_reply(session.client.page(HoldAnswer), lambda page: _show_list(page.items))


def _show_list(held: Sequence[HoldAnswer]) -> None:
    LIST.print(held)
    for each in held:
        _show_still_running(each)


def _standing(hold: HoldAnswer) -> str:
    """Return what is to be said of a hold that is not saved."""
    if hold.refused is not None:
        return f" (NOT held: {hold.refused}; `forewarn release {terminal.short(hold.id)}` when you know)"
    return "" if hold.saved else " (in memory only)"


def _show_set(session: Session, hold: HoldAnswer) -> None:
    terminal.echo(f"{hold.reach}: held. Nothing new is announced or started; polls and approvals go on.")
    if hold.abort and hold.saved:
        _show_still_running(hold, nothing="What was under way is stopped: nothing of it runs.")
    if hold.note is not None:
        terminal.echo(f"  {hold.note[0].upper()}{hold.note[1:]}.")
    terminal.echo(f"  Lift it:  {session.command('release ' + hold.id)}")


def _show_still_running(hold: HoldAnswer, *, nothing: str = "") -> None:
    """Show what a hold could not stop, or not yet."""
    late = [each for each in hold.still_running if each.too_late]
    asked = [each for each in hold.still_running if not each.too_late]
    if nothing and not hold.still_running:
        terminal.echo(nothing)
    for those, said in ((late, "can no longer be stopped"), (asked, "is asked to stop")):
        for each in those:
            why = f" ({each.why})" if each.why else ""
            what = each.machine or f"the {each.task}"
            where = f" on {each.host}" if each.host else ""
            terminal.echo(f"  {what}{where} {said}{why}: order {terminal.short(each.order)}")


def _only(session: Session, host: str | None) -> str:
    """Find the hold on a project or a host or, where none is named, the only one there is."""
    held = [each for each in session.client.page(HoldAnswer).value.items if each.refused is None]
    named = {"project": session.project, "host": host}
    found = [each for each in held if (each.project, each.host) == (session.project, host)]
    if not any(named.values()):
        found = held
    if len(found) == 1:
        return found[0].id
    if found:
        raise RequestRefused(
            "several holds are in force: say which, by its id, --project or --host (`forewarn holds`)"
        )
    if not held:
        raise RequestRefused("nothing is held")
    where = " and ".join(f"{what} {name}" for what, name in named.items() if name)
    raise RequestRefused(f"there is no hold on {where}: `forewarn holds` shows those there are")
