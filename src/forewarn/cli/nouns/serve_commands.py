"""`forewarn serve` and `forewarn backup`: the server itself."""

import gc
from importlib import import_module
from types import ModuleType
from typing import Annotated

import typer

from forewarn.cli import terminal
from forewarn.cli.session import Json, Session

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
) -> None:
    """Run the service."""
    from forewarn.core.errors import ForewarnError

    gc.disable()  # until it answers
    program = installed("forewarn.server.serve")
    try:
        program.serve(
            {
                "config": config,
                "fleet": fleet,
                "database": database,
                "guest": guest or None,
                "operator": operator,
                "clock": clock,
            }
        )
    except ForewarnError as error:
        raise _failed(error) from None


def backup(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE")],
    database: Database = None,
    json: Json = None,
) -> None:
    """Copy the store to a file, also while a server runs on it."""
    from forewarn.core.errors import ForewarnError

    program = installed("forewarn.server.serve")
    try:
        webhooks = program.backup(database, file)
    except ForewarnError as error:
        raise _failed(error) from None
    if json or (isinstance(ctx.obj, Session) and ctx.obj.json):
        terminal.print_json({"file": file, "webhooks": webhooks})
        return
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
        terminal.print_error(
            f"the server is not installed ({error.name} is missing)\n"
            "Install it with `pip install 'forewarn[server]'`."
        )
        raise typer.Exit(1) from None


def _failed(error: Exception) -> typer.Exit:
    from forewarn.core.errors import Invalid

    terminal.print_error(str(error))
    return typer.Exit(2 if isinstance(error, Invalid) else 1)
