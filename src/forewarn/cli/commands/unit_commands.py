"""`forewarn unit`: write systemd units for the agent, the server, a filter or an import."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from forewarn.cli import terminal
from forewarn.cli.command_group import PATH, WrongUsage, argument, flag, option
from forewarn.cli.session import WITHIN_MACHINE, Noun, Session
from forewarn.client.replies import RequestRefused
from forewarn.core.errors import Invalid

# The paths in the unit files of the repository.
PROGRAM = "/usr/local/bin/forewarn"
KILL = "/bin/kill"
# systemd replaces it with the host name.
HOST = " %H "
# From this version on, systemd sends the reload signal itself and waits for the reload.
NOTIFY_RELOAD_SINCE = 253

FOLDER = Path("/etc/systemd/system")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFile:
    """The unit of a program."""

    file: str
    config: str  # where the unit expects the config
    write_config: str  # how to write the config

    @property
    def name(self) -> str:
        """The unit's name, as people type it."""
        return self.file.removesuffix(".service")


UNITS = {
    "agent": UnitFile(
        file="forewarn-agent.service",
        config="/etc/forewarn/agent.toml",
        write_config="`{forewarn} agent init {path}` writes one",
    ),
    "server": UnitFile(
        file="forewarn.service",
        config="/etc/forewarn/forewarn.toml",
        write_config="write one (an empty file keeps all defaults; see docs/reference/settings.md)",
    ),
    "filter": UnitFile(
        file="forewarn-filter.service",
        config="/etc/forewarn/filter.env",
        write_config="write one for root alone, with FOREWARN_SERVER= and a viewer's FOREWARN_TOKEN=",
    ),
    "import": UnitFile(
        file="forewarn-import.service",
        config="/etc/forewarn/import.env",
        write_config="write one for root alone, with FOREWARN_SERVER= and an operator's FOREWARN_TOKEN=",
    ),
}


def unit_text(
    service: UnitFile,
    *,
    command: str,
    program: list[str],
    config: Path,
    kill: str | None,
    systemd: int | None,
    host: str | None = None,
) -> str:
    """Return a unit that runs a program of this machine with a config.

    `command` is the command that writes it. `kill` is the path of that program and `systemd` the version;
    None if not installed. `host` is the host of a filter; None: the host name of this machine.
    """
    text = (resources.files("forewarn.cli") / "unit_files" / service.file).read_text(encoding="utf-8")
    # The comment at the top explains how to copy the file: skip it.
    body = text[text.index("[Unit]") :]
    if systemd is not None and systemd < NOTIFY_RELOAD_SINCE:
        body = body.replace("Type=notify-reload", f"Type=notify\nExecReload={KILL} -HUP $MAINPID")
    given = f" --config {service.config}"
    body = body.replace(given, f" --config {word(str(config))}")
    # Its value is no command line: systemd only expands specifiers.
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
    """Quote a word for a command line in a systemd unit."""
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
    argument("program", "PROGRAM", "The program: agent, server, filter or import."),
    option("--config", "FILE", "The config. Default: the one in /etc/forewarn.", type=PATH),
    option("--to", "PATH", f"The file or folder to write to. Default: {FOLDER}.", type=PATH),
    flag("--print print_", "Print the unit, and write nothing."),
    option("--host", "NAME", "The host of a filter. Default: the host name of this machine."),
    flag("--force", "Overwrite a file that differs."),
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
    """Write a systemd unit with the paths of this machine."""
    if program not in UNITS:
        raise WrongUsage("PROGRAM", f"expected {', '.join(UNITS)}, got {program!r}")
    if host is not None and program != "filter":
        raise WrongUsage("--host", "only a filter takes a host")
    service = UNITS[program]
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
    """Return the command that runs this program, from any folder."""
    typed = shutil.which(sys.argv[0])
    if typed is not None and Path(typed).name != "__main__.py":
        return [os.path.abspath(typed)]
    return [sys.executable, "-m", "forewarn"]


def _config(session: Session, service: UnitFile, given: Path | None) -> Path:
    """Return the config. Refuse a missing one, because systemd would restart the program forever."""
    path = given or Path(service.config)
    if path.is_file():
        return path.absolute()
    how = service.write_config.format(forewarn=session.command("").rstrip(), path=path)
    raise RequestRefused(f"config {path} does not exist; {how}, or choose another with --config")


def _version_of_systemd() -> int | None:
    """Return the version of systemd; None if it is not installed."""
    if (systemctl := shutil.which("systemctl")) is None:
        return None
    try:
        asked = subprocess.run([systemctl, "--version"], capture_output=True, check=False)  # noqa: S603
    except OSError:
        return None
    found = re.match(rb"systemd (\d+)", asked.stdout)
    return int(found[1]) if found else None


def _write(file: Path, text: str, *, force: bool) -> bool:
    """Write a file unless it has this text; return whether it was written."""
    try:
        there = file.read_text(encoding="utf-8", errors="replace") if file.exists() else None
        if there == text:
            return False
        if there is not None and not force:
            raise RequestRefused(
                f"{file} exists and differs; --force overwrites it, --print shows the new text"
            )
        file.write_text(text, encoding="utf-8")
    except FileNotFoundError:
        raise RequestRefused(
            f"{file} cannot be written: folder {file.parent} does not exist; choose another with --to"
        ) from None
    except OSError as error:
        raise RequestRefused(f"{file} cannot be written: {error.strerror}") from None
    return True


def _show(session: Session, service: UnitFile, file: Path, text: str, *, written: bool) -> None:
    terminal.echo(f"Wrote {file}." if written else f"{file} is up to date.")
    for line in _before_it_starts(text):
        terminal.echo_wrapped(line, indent="  ", hanging="    ")
    terminal.echo(f"Start it with `systemctl daemon-reload && systemctl enable --now {service.name}`.")


def _before_it_starts(text: str) -> list[str]:
    """Return the reasons why systemd could not start this unit."""
    found = []
    if user := re.search(r"^User=(\S+)$", text, re.MULTILINE):
        from forewarn.platform import system

        try:
            system.identity_of(user[1])
        except LookupError:
            found.append(
                f"User {user[1]} does not exist; create it with `useradd --system --create-home "
                f"--home-dir /var/lib/{user[1]} --shell /usr/sbin/nologin {user[1]}`. Put its SSH keys into "
                f"/var/lib/{user[1]}/.ssh: the unit hides /home and /root."
            )
    program = re.search(r"^ExecStart=\"?(\S+)", text, re.MULTILINE)
    if "ProtectHome=true" in text and program and program[1].startswith(("/home/", "/root/")):
        found.append(
            f"{program[1]} is in a home folder, and ProtectHome hides it from the unit: install forewarn "
            "elsewhere, or remove ProtectHome."
        )
    return found
