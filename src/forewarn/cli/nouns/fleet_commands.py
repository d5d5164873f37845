"""`forewarn fleet`: the fleet as a file, and counted."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.confirmation import confirm
from forewarn.cli.options import completion
from forewarn.cli.options.machine_options import pairs
from forewarn.cli.options.shared_options import seconds
from forewarn.cli.session import BAD_REQUEST, Noun, Session
from forewarn.client.replies import CONFLICT, Reply, RequestRefused
from forewarn.core.errors import Invalid
from forewarn.wire.answers.fleet_answers import (
    AppliedFleetAnswer,
    FittedDomainsAnswer,
    FleetAnswer,
    SummaryAnswer,
)

app = Noun()

REMOVES_MACHINE = "- machine "
# A screen; all of them are thousands in a large fleet.
SHOWN_CHANGES = 20


@app.command()
def show(session: Session) -> None:
    """Show the fleet as the file that would declare it."""
    session.print_reply(session.client.get("/v1/fleet", FleetAnswer), _show)


@app.command()
def summary(session: Session) -> None:
    """Count machines by group and update domain, and hosts, events, orders, rollouts and holds."""
    from forewarn.cli.views.fleet_summary import show_summary

    reply = session.client.get("/v1/summary", SummaryAnswer, **session.scope)
    session.print_reply(reply, show_summary)


@app.command()
def apply(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A fleet in TOML.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before machines are removed.")] = False,
) -> None:
    """Make the fleet what a file says; the difference is shown first."""
    declared = read_file(file)
    with _naming(file):
        planned = _put(session, declared, dry_run=True)
    changes = planned.value.changes
    if not session.json:
        terminal.echo("\n".join(changes) or "Nothing to change: the fleet is what the file says.")
    if dry_run or not changes:
        session.print_reply(planned, lambda _: None)
        return
    _ask(changes, yes=yes)
    with _naming(file):
        done = _put(session, declared)
    session.print_reply(
        done, lambda made: terminal.echo(f"Applied: {formatting.counted(len(made.changes), 'change')}.")
    )


@app.command("import")
def import_(
    session: Session,
    source: Annotated[
        str, typer.Option("--from", metavar="DRIVER", help="Who knows what there is: libvirt, openstack, …")
    ],
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=URI", help="A host to ask besides those of the fleet; may be repeated."),
    ] = None,
    take: Annotated[
        str | None,
        typer.Option(metavar="FIELD,…", help="In these fields the source is right, not what was declared."),
    ] = None,
    managed: Annotated[
        bool, typer.Option("--managed", help="Take machines, too, that another manager has, as nova.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before half of it is removed.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on until you end it, and show each difference.")
    ] = False,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="How often it is looked at with --watch.")
    ] = "1m",
) -> None:
    """Make the fleet what a hypervisor or cloud has; the difference is shown first."""
    from forewarn.cli.following.fleet_import import FleetImport

    body = {
        "from": source,
        "hosts": pairs(host, "--host"),
        "take": take.split(",") if take else [],
        "managed": managed,
        "yes": yes,
    }
    importing = FleetImport(session, body, dry_run=dry_run, yes=yes)
    if watch:
        importing.watch(seconds(every, hint="--every"))
    else:
        importing.run()


@app.command()
def domains(
    session: Session,
    fit: Annotated[
        bool, typer.Option("--fit", help="Let update domains follow the hosts, so that rollouts are short.")
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(metavar="GROUP", help="Only of this group.", autocompletion=completion.names("groups")),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Apply it; else it is only shown.")] = False,
) -> None:
    """Show which update domains would make rollouts short, and apply them with --yes."""
    if not fit:
        raise typer.BadParameter("say --fit: it is what can be done to update domains", param_hint="--fit")
    body = {"group": group, "dry_run": not yes}
    reply = session.client.post("/v1/fleet/domains", FittedDomainsAnswer, body)
    session.print_reply(reply, lambda fitted: _show_fitted(fitted, applied=yes))


def _show_fitted(fitted: FittedDomainsAnswer, *, applied: bool) -> None:
    before = f"A rollout over all hosts has {formatting.counted(fitted.waves_before, 'wave')}"
    if not fitted.changes:
        terminal.echo(f"{before}, and would have no fewer: nothing to change.")
        return
    changed = formatting.counted(len(fitted.changes), "machine")
    some = fitted.changes[:SHOWN_CHANGES]
    more = len(fitted.changes) - len(some)
    terminal.echo("\n".join(some) + (f"\n… and {more} more (--json shows all)" if more else ""))
    verb = "got" if applied else "would get"
    after = "now has" if applied else "would then have"
    terminal.echo(f"{changed} {verb} another update domain. {before}; it {after} {fitted.waves_after}.")
    if not applied:
        terminal.echo("Nothing was changed: --yes applies it.")


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Let the server's refusal of what a file says name the file, as `serve --fleet` does."""
    try:
        yield
    except RequestRefused as refusal:
        if refusal.status == BAD_REQUEST:
            raise Invalid(f"{file}: {refusal}") from None
        if refusal.status == CONFLICT:
            raise RequestRefused(f"{file}: {refusal}", status=CONFLICT, code=refusal.code) from None
        raise


def _put(session: Session, declared: object, *, dry_run: bool | None = None) -> Reply[AppliedFleetAnswer]:
    params = {"dry_run": dry_run}
    return session.client.call("PUT", "/v1/fleet", AppliedFleetAnswer, body=declared, params=params)


def read_file(file: Path) -> dict[str, Any]:
    """Read what a fleet file declares."""
    import json

    from forewarn.core.toml_text import parse_toml
    from forewarn.wire.fleet import unreadable_fleet_file

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_fleet_file(str(file), error) from None
    declared = parse_toml(text, name=str(file), finite=True)
    # What only TOML has (dates) becomes texts, so that the server can say what it expected instead.
    written: dict[str, Any] = json.loads(json.dumps(declared, default=str))
    return written


def _ask(changes: Sequence[str], *, yes: bool) -> None:
    removed = sum(change.startswith(REMOVES_MACHINE) for change in changes)
    if not removed:
        return
    what = formatting.counted(removed, "machine")
    confirm(
        f"Remove {what}, without notice to anybody?",
        would=f"remove {what} without notice to anybody",
        yes=yes,
    )


def _show(answer: FleetAnswer) -> None:
    from forewarn.cli.views.fleet_toml import fleet_file

    terminal.echo(fleet_file(answer.fleet))
