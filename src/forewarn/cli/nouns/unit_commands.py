"""`forewarn unit`: have systemd run the agent, the server, the filter of a host or an import."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import PATH, argument, flag, option
from forewarn.cli.session import WITHIN_MACHINE, Noun, Session
from forewarn.client.replies import RequestRefused
from forewarn.core.errors import Invalid

# Where the files in the repository expect the program, and `kill`.
PROGRAM = "/usr/local/bin/forewarn"
KILL = "/bin/kill"
# What systemd puts in its place is the host's own name.
HOST = " %H "
# From this version on systemd sends the signal to reload by itself, and waits until that is done.
NOTIFY_RELOAD_SINCE = 253

FOLDER = Path("/etc/systemd/system")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A program of forewarn that systemd can run."""

    file: str  # the name of its unit
    config: str  # where the unit expects the config
    write_config: str  # how to write that config

    @property
    def name(self) -> str:
        """The unit's name, as people type it."""
        return self.file.removesuffix(".service")


SERVICES = {
    "agent": Service(
        file="forewarn-agent.service",
        config="/etc/forewarn/agent.toml",
        write_config="`{forewarn} agent init {path}` writes one",
    ),
    "server": Service(
        file="forewarn.service",
        config="/etc/forewarn/forewarn.toml",
        write_config="write one (an empty file keeps all defaults; see docs/reference/settings.md)",
    ),
    "filter": Service(
        file="forewarn-filter.service",
        config="/etc/forewarn/filter.env",
        write_config="write one, for root alone, with FOREWARN_SERVER= and FOREWARN_TOKEN= of a viewer",
    ),
    "import": Service(
        file="forewarn-import.service",
        config="/etc/forewarn/import.env",
        write_config="write one, for root alone, with FOREWARN_SERVER= and FOREWARN_TOKEN= of an operator",
    ),
}


def unit_text(
    service: Service,
    *,
    command: str,
    program: list[str],
    config: Path,
    kill: str | None,
    systemd: int | None,
    host: str | None = None,
) -> str:
    """Return a unit that runs a program of this machine with a config.

    `command` is what writes it, `kill` where that program is, `systemd` its version; None if there is none.
    `host` is the host of a filter; None: the one that has this machine's name.
    """
    text = (resources.files("forewarn.cli") / "unit_files" / service.file).read_text(encoding="utf-8")
    # The comment at the top says how to copy the file, which is done.
    body = text[text.index("[Unit]") :]
    if systemd is not None and systemd < NOTIFY_RELOAD_SINCE:
        body = body.replace("Type=notify-reload", f"Type=notify\nExecReload={KILL} -HUP $MAINPID")
    given = f" --config {service.config}"
    body = body.replace(given, f" --config {word(str(config))}")
    # Its value is no command line: systemd takes it as it is, but for specifiers.
    environment = "EnvironmentFile="
    body = body.replace(f"{environment}{service.config}", environment + _printable(config).replace("%", "%%"))
    if host is not None:
        body = body.replace(HOST, f" {word(host)} ")
    body = body.replace(PROGRAM, " ".join(map(word, program)))
    if kill is None:
        body = "".join(line for line in body.splitlines(keepends=True) if KILL not in line)
    else:
        body = body.replace(KILL, kill)
    return f"# Written by `{command}`.\n\n{body}"


def word(text: str) -> str:
    """Write a word as a command line of systemd takes it."""
    escaped = _printable(text).replace("%", "%%")
    if escaped == shlex.quote(escaped):
        return escaped
    quoted = escaped.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{quoted}"'


def _printable(text: str | Path) -> str:
    if not str(text).isprintable():
        raise Invalid(f"{str(text)!r}: expected a path without control characters")
    return str(text)


app = Noun((), shared=WITHIN_MACHINE)


@app.verb(
    argument("program", "PROGRAM", "agent, server, filter or import."),
    option("--config", "FILE", "Its config. Else the one in /etc/forewarn.", type=PATH),
    option("--to", "PATH", f"A file, or a folder, to write it to. Else {FOLDER}.", type=PATH),
    flag("--print print_", "Print it, and write nothing."),
    option("--host", "NAME", "Of a filter: the host. Else the one with this machine's name."),
    flag("--force", "Write over a file that differs."),
)
def install(
    session: Session,
    program: str,
    config: Path | None,
    to: Path | None,
    print_: bool,
    host: str | None,
    force: bool,
) -> None:
    """Write a unit of systemd, with the paths of this machine."""
    if program not in SERVICES:
        raise click.BadParameter(f"expected {', '.join(SERVICES)}, got {program!r}", param_hint="PROGRAM")
    if host is not None and program != "filter":
        raise click.BadParameter("a filter alone is of one host", param_hint="--host")
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
