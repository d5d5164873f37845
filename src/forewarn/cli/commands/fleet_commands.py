"""`forewarn fleet`: show the fleet as a file, count it, apply a file, import from a hypervisor."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import PATH, WrongUsage, argument, flag, option
from forewarn.cli.options import duration, pairs
from forewarn.cli.session import BAD_REQUEST, Noun, Session
from forewarn.cli.views.confirmation import SURE, confirm
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
# A large fleet may have thousands of changes.
SHOWN_CHANGES = 20


@app.verb()
def show(session: Session) -> None:
    """Show the fleet as a fleet file."""
    session.print_reply(session.client.get("/v1/fleet", FleetAnswer), _show)


@app.verb()
def summary(session: Session) -> None:
    """Count machines by group and update domain, and hosts, events, orders, rollouts and holds."""
    from forewarn.cli.views.fleet_view import show_summary

    reply = session.client.get("/v1/summary", SummaryAnswer, **session.scope)
    session.print_reply(reply, show_summary)


@app.verb(
    argument("file", "FILE", "A fleet file in TOML.", type=PATH),
    flag("--dry-run", "Show the changes, and apply none."),
    SURE,
)
def apply(session: Session, file: Path, dry_run: bool, yes: bool) -> None:
    """Change the fleet to match a file; the changes are shown first."""
    declared = read_file(file)
    with _naming(file):
        planned = _put(session, declared, dry_run=True)
    changes = planned.value.changes
    if not session.json:
        terminal.echo("\n".join(changes) or "No changes: the fleet matches the file.")
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
    option(
        "--from source",
        "DRIVER",
        "The driver to import from: libvirt, openstack or a plug-in.",
        required=True,
    ),
    option("--host", "NAME=URI", "A host to read besides those of the fleet. Repeatable.", multiple=True),
    option("--take", "FIELD,…", "Let the source overwrite these declared fields."),
    flag("--managed", "Include machines of another manager, such as nova."),
    flag("--dry-run", "Show the changes, and apply none."),
    SURE,
    flag("--watch", "Repeat until interrupted, and show each change."),
    duration("--every", "With --watch: the pause between two imports.", default="1m"),
)
def import_(
    session: Session,
    source: str,
    host: tuple[str, ...],
    take: str | None,
    dry_run: bool,
    watch: bool,
    every: float,
    **body: Any,
) -> None:
    """Change the fleet to match a hypervisor or cloud; the changes are shown first."""
    body |= {"from": source, "hosts": pairs(host, "--host"), "take": take.split(",") if take else []}
    importing = FleetImport(session, body, dry_run=dry_run)
    if watch:
        importing.watch(every)
    else:
        importing.run()


@app.verb(
    flag("--fit", "Fit update domains to the hosts, so that rollouts need fewer waves."),
    option("--group", "GROUP", "Only of this group."),
    flag("--yes", "Apply the changes. Without it they are only shown."),
)
def domains(session: Session, fit: bool, group: str | None, yes: bool) -> None:
    """Show the update domains that would shorten rollouts, and apply them with --yes."""
    if not fit:
        raise WrongUsage("--fit", "is required")
    body = {"group": group, "dry_run": not yes}
    reply = session.client.post("/v1/fleet/domains", FittedDomainsAnswer, body)
    session.print_reply(reply, lambda fitted: _show_fitted(fitted, applied=yes))


def _show_fitted(fitted: FittedDomainsAnswer, *, applied: bool) -> None:
    before = f"A rollout over all hosts has {formatting.counted(fitted.waves_before, 'wave')}"
    if not fitted.changes:
        terminal.echo(f"{before}. No other update domains would shorten it.")
        return
    changed = formatting.counted(len(fitted.changes), "machine")
    some = fitted.changes[:SHOWN_CHANGES]
    more = len(fitted.changes) - len(some)
    terminal.echo("\n".join(some) + (f"\n… and {more} more (--json shows all)" if more else ""))
    verb = "got" if applied else "would get"
    after = "now has" if applied else "would then have"
    terminal.echo(f"{changed} {verb} another update domain. {before}; it {after} {fitted.waves_after}.")
    if not applied:
        terminal.echo("Nothing was changed; --yes applies the changes.")


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Put the name of the file in front of the server's refusals, as `serve --fleet` does."""
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
    """Read a fleet file."""
    import json

    from forewarn.core.toml_text import parse_toml
    from forewarn.wire.fleet import unreadable_fleet_file

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_fleet_file(str(file), error) from None
    declared = parse_toml(text, name=str(file), finite=True)
    # JSON has no dates: they become texts, so that the server can refuse them with the name of the field.
    written: dict[str, Any] = json.loads(json.dumps(declared, default=str))
    return written


def _ask(changes: Sequence[str], *, yes: bool) -> None:
    removed = sum(change.startswith(REMOVES_MACHINE) for change in changes)
    if not removed:
        return
    what = f"remove {formatting.counted(removed, 'machine')} without notice"
    confirm(f"{what.capitalize()}?", would=what, yes=yes)


def _show(answer: FleetAnswer) -> None:
    from forewarn.cli.views.fleet_view import fleet_file

    terminal.echo(fleet_file(answer.fleet))


def rest(seconds: float) -> None:
    """Wait between two imports."""
    threading.Event().wait(seconds)


class FleetImport:
    """An import of the fleet from one driver."""

    def __init__(self, session: Session, body: Mapping[str, Any], *, dry_run: bool) -> None:
        self._session = session
        self._body = body
        self._dry_run = dry_run
        self._shown: Sequence[str] = ()

    def run(self) -> None:
        """Show the changes, and apply them."""
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
        """Import repeatedly until interrupted."""
        try:
            while True:
                self._import_once()
                rest(every)
        except KeyboardInterrupt:
            return

    def _import_once(self) -> None:
        try:
            answer = self._post(dry_run=self._dry_run)
        except (RequestRefused, ServerUnreachable) as error:
            self._show_remarks([f"{error}"])
            return
        if self._session.json:
            if answer.value.changes:
                self._session.print_reply(answer, lambda _: None)
            return
        self._show(answer.value, first=False)
        if answer.value.applied:
            _show_applied(answer.value)

    def _post(self, **more: Any) -> Reply[ImportAnswer]:
        return self._session.client.post("/v1/fleet/import", ImportAnswer, {**self._body, **more})

    def _show(self, answer: ImportAnswer, *, first: bool) -> None:
        if answer.changes:
            terminal.echo("\n".join(answer.changes))
        elif first:
            same = f": the fleet matches {answer.source}" if not answer.conflicts + answer.notes else ""
            terminal.echo(f"No changes{same}.")
        self._show_remarks(
            [*(f"! {line}" for line in answer.conflicts), *(f"? {line}" for line in answer.notes)]
        )

    def _show_remarks(self, lines: Sequence[str]) -> None:
        """Print remarks, unless they are those of the import before."""
        if lines and lines != self._shown:
            terminal.echo("\n".join(lines))
        self._shown = lines

    def _ask(self, answer: ImportAnswer) -> None:
        if not answer.removes_half:
            return
        what = f"remove {answer.removes} of {formatting.counted(answer.of, 'machine')}"
        what += f", because {answer.source} no longer has them"
        confirm(f"{what[0].upper()}{what[1:]}?", would=what, yes=self._body["yes"])
        self._body = {**self._body, "yes": True}


def _show_applied(answer: ImportAnswer) -> None:
    terminal.echo(f"Imported: {formatting.counted(len(answer.changes), 'change')}.")
