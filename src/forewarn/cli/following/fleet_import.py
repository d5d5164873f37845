"""`forewarn fleet import`: the difference is shown, then applied; once, or again and again."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from forewarn.cli import formatting, terminal
from forewarn.cli.confirmation import confirm
from forewarn.cli.session import Session
from forewarn.client.replies import Reply, RequestRefused, ServerUnreachable
from forewarn.wire.answers.fleet_answers import ImportAnswer

_PATH = "/v1/fleet/import"


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
