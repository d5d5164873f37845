"""Units of systemd: what `packaging/systemd` has, with the paths of this machine in them."""

import shlex
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from forewarn.core.errors import Invalid

# Where the files in the repository expect the program, and `kill`.
PROGRAM = "/usr/local/bin/forewarn"
KILL = "/bin/kill"
# What systemd puts in its place is the host's own name.
HOST = " %H "
# From this version on systemd sends the signal to reload by itself, and waits until that is done.
NOTIFY_RELOAD_SINCE = 253


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
