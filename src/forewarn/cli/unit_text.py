"""Units of systemd: what `packaging/systemd` has, with the paths of this machine in them."""

import shlex
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from forewarn.core.errors import Invalid

# Where the files in the repository expect the program, and `kill`.
PROGRAM = "/usr/local/bin/forewarn"
KILL = "/bin/kill"
# From this version on systemd sends the signal to reload by itself, and waits until that is done.
NOTIFY_RELOAD_SINCE = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A program of forewarn that systemd can run."""

    file: str  # the name of its unit
    config: str  # where the unit expects the config
    needs_config: bool  # else it runs without one, too

    @property
    def name(self) -> str:
        """The unit's name, as people type it."""
        return self.file.removesuffix(".service")


SERVICES = {
    "agent": Service(file="forewarn-agent.service", config="/etc/forewarn/agent.toml", needs_config=True),
    "server": Service(file="forewarn.service", config="/etc/forewarn/forewarn.toml", needs_config=False),
}


def unit_text(
    service: Service,
    *,
    command: str,
    program: list[str],
    config: Path | None,
    kill: str | None,
    systemd: int | None,
) -> str:
    """Return a unit that runs a program of this machine; without a config, one that has none.

    `command` is what writes it, `kill` where that program is, `systemd` its version; None if there is none.
    """
    text = (resources.files("forewarn.cli") / "unit_files" / service.file).read_text(encoding="utf-8")
    # The comment at the top says how to copy the file, which is done.
    body = text[text.index("[Unit]") :]
    if systemd is not None and systemd < NOTIFY_RELOAD_SINCE:
        body = body.replace("Type=notify-reload", f"Type=notify\nExecReload={KILL} -HUP $MAINPID")
    given = f" --config {service.config}"
    body = body.replace(given, "" if config is None else f" --config {word(str(config))}")
    body = body.replace(PROGRAM, " ".join(map(word, program)))
    if kill is None:
        body = "".join(line for line in body.splitlines(keepends=True) if KILL not in line)
    else:
        body = body.replace(KILL, kill)
    return f"# Written by `{command}`.\n\n{body}"


def word(text: str) -> str:
    """Write a word as a command line of systemd takes it."""
    if not text.isprintable():
        raise Invalid(f"{text!r}: expected a path without control characters")
    escaped = text.replace("%", "%%")
    if escaped == shlex.quote(escaped):
        return escaped
    quoted = escaped.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{quoted}"'
