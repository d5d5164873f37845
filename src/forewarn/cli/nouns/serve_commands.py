"""`forewarn serve`, `backup` and `copy`: the server itself, and its store."""

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

# A copy that takes no longer needs no progress.
TELL_EVERY = 2.0

DATABASE = option(
    "--database", "URL", "sqlite:///FILE or postgresql://…; else a file in the working directory."
)


@command(
    option("--config", "FILE", "Settings in TOML."),
    option("--fleet", "FILE", "A fleet to apply, if it is new."),
    DATABASE,
    option(
        "--guest",
        "HOST:PORT",
        "Where guests are answered; may be repeated. Else 127.0.0.1:8169.",
        multiple=True,
    ),
    option("--operator", "HOST:PORT", "Where operators are. Else 127.0.0.1:8170."),
    option("--clock", "CLOCK", "system, manual, or xN to run N times as fast."),
    flag("--no-hold", "Let what is open in a backup go on when it is first served."),
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
    """Run the service."""
    gc.disable()  # until it answers
    options = {"config": config, "fleet": fleet, "database": database, "operator": operator, "clock": clock}
    installed("forewarn.server.serve").serve({**options, "guest": [*guest] or None, "no_hold": no_hold})


@command(argument("file", "FILE"), DATABASE, shared=[JSON])
def backup(session: Session, file: str, database: str | None) -> None:
    """Copy the store to a file, also while a server runs on it."""
    webhooks = installed("forewarn.server.serve").backup(database, file)
    answer = {"file": file, "webhooks": webhooks}
    session.print_answer(answer, lambda: _show_saved(file, webhooks))


@command(
    argument("source", "FROM", "sqlite:///FILE, FILE or postgresql://…"),
    argument("target", "TO", "The same, and empty."),
    shared=[JSON],
)
def copy(session: Session, source: str, target: str) -> None:
    """Copy the store to another database, of either kind, and compare all of it; no server may run on it."""
    copied = installed("forewarn.server.serve").copy(source, target, progress=_Pace().show)
    answer = {"from": copied.source, "to": copied.target, "rows": copied.rows}
    session.print_answer(answer, lambda: _show_copied(copied))


class _Pace:
    """Shows now and then how far a long copy is; on stderr, where it is in no program's way."""

    def __init__(self) -> None:
        self._next = monotonic() + TELL_EVERY

    def show(self, done: str, rows: int, total: int) -> None:
        if monotonic() >= self._next:
            self._next = monotonic() + TELL_EVERY
            print(f"{done} {rows:,} of {total:,} rows …", file=sys.stderr, flush=True)


def _show_copied(copied: Any) -> None:
    terminal.echo(f"{copied.source} is copied to {copied.target}: {copied.rows:,} rows, all compared.")
    terminal.echo("  Serve only one of them: both know the same orders, and push to the same webhooks.")


def _show_saved(file: str, webhooks: int) -> None:
    terminal.echo(f"The store is saved in {file}.")
    if webhooks:
        which = "its webhook" if webhooks == 1 else f"its {webhooks} webhooks"
        terminal.echo(
            f"  Whoever serves it pushes to {which} as this store does: remove them there if it is a trial."
        )


def installed(module: str) -> ModuleType:
    """Import what needs the server, which may not be installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise RequestRefused(
            f"the server is not installed ({error.name} is missing)\n"
            "Install it with `pip install 'forewarn[server]'`."
        ) from None
