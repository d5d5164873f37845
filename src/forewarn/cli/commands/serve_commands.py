"""`forewarn serve`, `backup` and `copy`: run the server, and copy its store."""

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from forewarn.cli import terminal
from forewarn.cli.command_group import argument, flag, option
from forewarn.cli.session import JSON, Session, command
from forewarn.client.replies import RequestRefused
from forewarn.clock import monotonic

# A long copy shows its progress this often.
PROGRESS_SECONDS = 2.0

DATABASE = option(
    "--database", "URL", "sqlite:///FILE or postgresql://…. Default: a file in the working directory."
)


@command(
    option("--config", "FILE", "Settings in TOML."),
    option("--fleet", "FILE", "A fleet file, applied if it has changed since it was last applied."),
    DATABASE,
    option(
        "--guest",
        "HOST:PORT",
        "The address for guests. Repeatable. Default: 127.0.0.1:8169.",
        multiple=True,
    ),
    option("--operator", "HOST:PORT", "The address for operators and the console. Default: 127.0.0.1:8170."),
    option("--clock", "CLOCK", "The clock: system, manual, or xN to run N times as fast."),
    flag("--no-hold", "Continue open orders when a backup is served for the first time."),
    shared=(),
)
def serve(
    _: Session,
    config: str | None,
    fleet: str | None,
    database: str | None,
    guest: tuple[str, ...],
    operator: str | None,
    clock: str | None,
    no_hold: bool,
) -> None:
    """Run the server."""
    gc.disable()  # until the server answers
    options = {"config": config, "fleet": fleet, "database": database, "operator": operator, "clock": clock}
    installed("forewarn.server.serve").serve({**options, "guest": [*guest] or None, "no_hold": no_hold})


@command(argument("file", "FILE", "The file to write."), DATABASE, shared=[JSON])
def backup(session: Session, file: str, database: str | None) -> None:
    """Copy the store to a file, even while a server uses it."""
    webhooks = installed("forewarn.server.serve").backup(database, file)
    answer = {"file": file, "webhooks": webhooks}
    session.print_answer(answer, lambda: _show_saved(file, webhooks))


@command(
    argument("source", "FROM", "The source: sqlite:///FILE, FILE or postgresql://…."),
    argument("target", "TO", "The target, in the same form; it must be empty."),
    shared=[JSON],
)
def copy(session: Session, source: str, target: str) -> None:
    """Copy the store to another database and compare every row. Stop the server first."""
    copied = installed("forewarn.server.serve").copy(source, target, progress=_Progress().show)
    answer = {"from": copied.source, "to": copied.target, "rows": copied.rows}
    session.print_answer(answer, lambda: _show_copied(copied))


class _Progress:
    """The progress of a long copy, printed to stderr."""

    def __init__(self) -> None:
        self._next = monotonic() + PROGRESS_SECONDS

    def show(self, done: str, rows: int, total: int) -> None:
        if monotonic() >= self._next:
            self._next = monotonic() + PROGRESS_SECONDS
            print(f"{done} {rows:,} of {total:,} rows …", file=sys.stderr, flush=True)


def _show_copied(copied: Any) -> None:
    terminal.echo(f"Copied {copied.source} to {copied.target}: {copied.rows:,} rows, all compared.")
    terminal.echo("  Serve only one of them: both have the same orders and webhooks.")


def _show_saved(file: str, webhooks: int) -> None:
    terminal.echo(f"Copied the store to {file}.")
    if webhooks:
        which = "the webhook" if webhooks == 1 else f"the {webhooks} webhooks"
        terminal.echo(f"  A server on the copy also pushes to {which}. For a trial, remove them there.")


def installed(module: str) -> ModuleType:
    """Import a module of the server, which may not be installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise RequestRefused(
            f"the server is not installed ({error.name} is missing)\n"
            "Install it with `pip install 'forewarn[server]'`."
        ) from None
