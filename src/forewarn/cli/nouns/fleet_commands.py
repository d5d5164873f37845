"""`forewarn fleet`: the fleet as a file, and counted."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import PATH, argument, flag, option
from forewarn.cli.completion import names
from forewarn.cli.options import pairs, seconds
from forewarn.cli.session import BAD_REQUEST, Noun, Session
from forewarn.cli.views.questions import confirm
from forewarn.client.replies import CONFLICT, Reply, RequestRefused, ServerUnreachable
from forewarn.core.errors import Invalid
from forewarn.wire.answers.fleet_answers import (
    AppliedFleetAnswer,
    FittedDomainsAnswer,
    FleetAnswer,
    ImportAnswer,
    SummaryAnswer,
)

app = Noun()

REMOVES_MACHINE = "- machine "
# A screen; all of them are thousands in a large fleet.
SHOWN_CHANGES = 20

_PATH = "/v1/fleet/import"


@app.verb()
def show(session: Session) -> None:
    """Show the fleet as the file that would declare it."""
    session.print_reply(session.client.get("/v1/fleet", FleetAnswer), _show)


@app.verb()
def summary(session: Session) -> None:
    """Count machines by group and update domain, and hosts, events, orders, rollouts and holds."""
    from forewarn.cli.views.fleet_view import show_summary

    reply = session.client.get("/v1/summary", SummaryAnswer, **session.scope)
    session.print_reply(reply, show_summary)


@app.verb(
    argument("file", "FILE", "A fleet in TOML.", type=PATH),
    flag("--dry-run", "Only show what would change."),
    flag("--yes", "Do not ask before machines are removed."),
)
def apply(session: Session, file: Path, dry_run: bool, yes: bool) -> None:
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


@app.verb(
    option("--from source", "DRIVER", "Who knows what there is: libvirt, openstack, …", required=True),
    option("--host", "NAME=URI", "A host to ask besides those of the fleet; may be repeated.", multiple=True),
    option("--take", "FIELD,…", "In these fields the source is right, not what was declared."),
    flag("--managed", "Take machines, too, that another manager has, as nova."),
    flag("--dry-run", "Only show what would change."),
    flag("--yes", "Do not ask before half of it is removed."),
    flag("--watch", "Go on until you end it, and show each difference."),
    option("--every", "DURATION", "How often it is looked at with --watch.", default="1m"),
)
def import_(
    session: Session,
    source: str,
    host: tuple[str, ...],
    take: str | None,
    managed: bool,
    dry_run: bool,
    yes: bool,
    watch: bool,
    every: str,
) -> None:
    """Make the fleet what a hypervisor or cloud has; the difference is shown first."""
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


@app.verb(
    flag("--fit", "Let update domains follow the hosts, so that rollouts are short."),
    option("--group", "GROUP", "Only of this group.", shell_complete=names("groups")),
    flag("--yes", "Apply it; else it is only shown."),
)
def domains(session: Session, fit: bool, group: str | None, yes: bool) -> None:
    """Show which update domains would make rollouts short, and apply them with --yes."""
    if not fit:
        raise click.BadParameter("say --fit: it is what can be done to update domains", param_hint="--fit")
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
    from forewarn.cli.views.fleet_view import fleet_file

    terminal.echo(fleet_file(answer.fleet))


def rest(seconds: float) -> None:
    """Wait between two looks."""
    threading.Event().wait(seconds)


class FleetImport:
    """Imports a fleet from one driver."""

    def __init__(self, session: Session, body: Mapping[str, Any], *, dry_run: bool, yes: bool) -> None:
        self._session = session
        self._body = body
        self._dry_run = dry_run
        self._yes = yes
        self._said: Sequence[str] = ()

    def run(self) -> None:
        """Show the difference, and apply it."""
        planned = self._post(dry_run=True)
        if not self._session.json:
            self._show(planned.value, first=True)
        if self._dry_run or not planned.value.changes:
            self._session.print_reply(planned, lambda _: None)
            return
        self._ask(planned.value)
        done = self._post(digest=planned.value.digest)
        self._session.print_reply(done, _show_applied)

    def watch(self, every: float) -> None:
        """Apply each difference as it comes, until somebody ends it."""
        try:
            while True:
                self._look()
                rest(every)
        except KeyboardInterrupt:
            return

    def _look(self) -> None:
        try:
            answer = self._post(dry_run=self._dry_run)
        except (RequestRefused, ServerUnreachable) as error:
            self._say([f"{error}"])
            return
        if self._session.json:
            if answer.value.changes:
                self._session.print_reply(answer, lambda _: None)
            return
        self._show(answer.value, first=False)
        if answer.value.applied:
            _show_applied(answer.value)

    def _post(self, **more: Any) -> Reply[ImportAnswer]:
        return self._session.client.post(_PATH, ImportAnswer, {**self._body, **more})

    def _show(self, answer: ImportAnswer, *, first: bool) -> None:
        if answer.changes:
            terminal.echo("\n".join(answer.changes))
        elif first:
            same = f": the fleet is what {answer.source} has" if not answer.conflicts + answer.notes else ""
            terminal.echo(f"Nothing to change{same}.")
        self._say([*(f"! {line}" for line in answer.conflicts), *(f"? {line}" for line in answer.notes)])

    def _say(self, lines: Sequence[str]) -> None:
        """Say what is left alone, but not again and again."""
        if lines and lines != self._said:
            terminal.echo("\n".join(lines))
        self._said = lines

    def _ask(self, answer: ImportAnswer) -> None:
        if not answer.removes_half:
            return
        what = f"{answer.removes} of {formatting.counted(answer.of, 'machine')}"
        confirm(
            f"Remove {what}, which {answer.source} does not have any more?",
            would=f"remove {what} that {answer.source} had",
            yes=self._yes,
        )
        self._body = {**self._body, "yes": True}


def _show_applied(answer: ImportAnswer) -> None:
    terminal.echo(f"Imported: {formatting.counted(len(answer.changes), 'change')}.")
