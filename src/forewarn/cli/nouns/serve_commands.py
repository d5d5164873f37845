"""`forewarn serve`, `backup` and `copy`: the server itself, and its store."""

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

import typer

from forewarn.cli import terminal
from forewarn.cli.session import Json, exit_codes, keep_options
from forewarn.client.replies import RequestRefused
from forewarn.clock import monotonic

# A copy that takes no longer needs no progress.
TELL_EVERY = 2.0

Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="sqlite:///FILE or postgresql://…; else a file in the working directory."
    ),
]


def serve(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Settings in TOML.")] = None,
    fleet: Annotated[str | None, typer.Option(metavar="FILE", help="A fleet to apply, if it is new.")] = None,
    database: Database = None,
    guest: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT", help="Where guests are answered; may be repeated. Else 127.0.0.1:8169."
        ),
    ] = None,
    operator: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where operators are. Else 127.0.0.1:8170.")
    ] = None,
    clock: Annotated[
        str | None, typer.Option(metavar="CLOCK", help="system, manual, or xN to run N times as fast.")
    ] = None,
    no_hold: Annotated[
        bool,
        typer.Option("--no-hold", help="Let what is open in a backup go on when it is first served."),
    ] = False,
) -> None:
    """Run the service."""
    gc.disable()  # until it answers
    options = {"config": config, "fleet": fleet, "database": database, "operator": operator, "clock": clock}
    with exit_codes():
        installed("forewarn.server.serve").serve({**options, "guest": guest or None, "no_hold": no_hold})


def backup(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE")],
    database: Database = None,
    json: Json = None,
) -> None:
    """Copy the store to a file, also while a server runs on it."""
    session = keep_options(ctx, json=json)
    with exit_codes(json=session.json):
        webhooks = installed("forewarn.server.serve").backup(database, file)
    answer = {"file": file, "webhooks": webhooks}
    session.print_answer(answer, lambda: _show_saved(file, webhooks))


def copy(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FROM", help="sqlite:///FILE, FILE or postgresql://…")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The same, and empty.")],
    json: Json = None,
) -> None:
    """Copy the store to another database, of either kind, and compare all of it; no server may run on it."""
    session = keep_options(ctx, json=json)
    with exit_codes(json=session.json):
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
