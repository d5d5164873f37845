"""`forewarn unit`: have systemd run the agent, the server, the filter of a host or an import."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from forewarn.cli import terminal
from forewarn.cli.command_group import CommandGroup
from forewarn.cli.session import Session, within_machine
from forewarn.cli.unit_text import SERVICES, Service, unit_text
from forewarn.client.replies import RequestRefused

FOLDER = Path("/etc/systemd/system")

app = CommandGroup(no_args_is_help=True)


@app.callback()
def unit() -> None:
    """Have systemd run the agent, the server, the filter of a host or an import."""


@app.command("install")
@within_machine
def install(
    session: Session,
    program: Annotated[
        str, typer.Argument(metavar="PROGRAM", help="agent, server, filter or import.", show_default=False)
    ],
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Its config. Else the one in /etc/forewarn."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="PATH", help=f"A file, or a folder, to write it to. Else {FOLDER}."),
    ] = None,
    print_: Annotated[bool, typer.Option("--print", help="Print it, and write nothing.")] = False,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="NAME", help="Of a filter: the host. Else the one with this machine's name."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that differs.")] = False,
) -> None:
    """Write a unit of systemd, with the paths of this machine."""
    if program not in SERVICES:
        raise typer.BadParameter(f"expected {', '.join(SERVICES)}, got {program!r}", param_hint="PROGRAM")
    if host is not None and program != "filter":
        raise typer.BadParameter("a filter alone is of one host", param_hint="--host")
    service = SERVICES[program]
    text = unit_text(
        service,
        command=f"forewarn unit install {program}",
        program=_program(),
        config=_config(session, service, config),
        kill=shutil.which("kill"),
        systemd=_version_of_systemd(),
        host=host,
    )
    if print_:
        session.print_answer({"unit": service.name, "text": text}, lambda: terminal.echo(text.rstrip("\n")))
        return
    place = to or FOLDER
    file = place / service.file if place == FOLDER or place.is_dir() else place
    written = _write(file, text, force=force)
    session.print_answer(
        {"unit": service.name, "file": str(file), "written": written, "text": text},
        lambda: _show(session, service, file, text, written=written),
    )


def _program() -> list[str]:
    """Return the words that run this program, from wherever they are typed."""
    typed = shutil.which(sys.argv[0])
    if typed is not None and Path(typed).name != "__main__.py":
        return [os.path.abspath(typed)]
    return [sys.executable, "-m", "forewarn"]


def _config(session: Session, service: Service, given: Path | None) -> Path:
    """Return the config to run with; systemd would restart a program without one for ever."""
    path = given or Path(service.config)
    if path.is_file():
        return path.absolute()
    how = service.write_config.format(forewarn=session.command("").rstrip(), path=path)
    raise RequestRefused(f"there is no config {path}: {how}, or name another with --config")


def _version_of_systemd() -> int | None:
    """Return the version of this machine's systemd; None if there is none."""
    if (systemctl := shutil.which("systemctl")) is None:
        return None
    try:
        asked = subprocess.run([systemctl, "--version"], capture_output=True, check=False)  # noqa: S603
    except OSError:
        return None
    found = re.match(rb"systemd (\d+)", asked.stdout)
    return int(found[1]) if found else None


def _write(file: Path, text: str, *, force: bool) -> bool:
    """Write a file, unless it is there as it should be; returns whether it was written."""
    try:
        there = file.read_text(encoding="utf-8", errors="replace") if file.exists() else None
        if there == text:
            return False
        if there is not None and not force:
            raise RequestRefused(
                f"{file} is there, and differs: --force writes over it, --print shows what would be written"
            )
        file.write_text(text, encoding="utf-8")
    except FileNotFoundError:
        raise RequestRefused(
            f"{file} cannot be written: there is no folder {file.parent}; --to names another place"
        ) from None
    except OSError as error:
        raise RequestRefused(f"{file} cannot be written: {error.strerror}") from None
    return True


def _show(session: Session, service: Service, file: Path, text: str, *, written: bool) -> None:
    terminal.echo(f"Written to {file}." if written else f"{file} is there already, as it should be.")
    for line in _before_it_starts(text):
        terminal.fold(line, indent="  ", hanging="    ")
    terminal.echo(f"Next: `systemctl daemon-reload && systemctl enable --now {service.name}`.")


def _before_it_starts(text: str) -> list[str]:
    """Return what would keep systemd from starting it as it is written."""
    found = []
    if user := re.search(r"^User=(\S+)$", text, re.MULTILINE):
        from forewarn.platform import system

        if (system.cannot_become(user[1]) or "").startswith("there is no user"):
            found.append(f"It runs as the user {user[1]}, whom there is not: `useradd --system {user[1]}`.")
    program = re.search(r"^ExecStart=\"?(\S+)", text, re.MULTILINE)
    if "ProtectHome=true" in text and program and program[1].startswith(("/home/", "/root/")):
        found.append(
            f"It sees nothing in home folders, and {program[1]} lies in one: install forewarn elsewhere, "
            "or take ProtectHome out of the unit."
        )
    return found
