"""A real `forewarn agent` in its own process, beside a real service with a manual clock."""

import json
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from forewarn.agent.journal.entries import Entry
from forewarn.agent.journal.journal_file import read, read_entries
from tests.helpers.programs.process import (
    FOREWARN,
    PATIENCE,
    Guest,
    Output,
    Program,
    sample_fleet,
    started,
    until,
)

HOOK = """#!/bin/sh
echo "$FOREWARN_SIDE $FOREWARN_EVENT_TYPE $FOREWARN_ATTEMPT" >> {folder}/ran
test ! -e {folder}/hold || while ! test -e {folder}/go; do sleep 0.02; done
"""
CONFIG = """
[agent]
endpoint = "http://127.0.0.1:{port}"
journal = "{journal}"
approve = "when-ready"
approver = "any"
settle = 0
{more}

[[handlers]]
name = "tell"
kind = "log"

[[handlers]]
name = "drain"
kind = "exec"
prepare = ["{folder}/hook"]
recover = ["{folder}/hook"]
timeout = "1m"
"""


NAMED = '[agent]\nendpoint = "{url}"\nmachine = "m"\njournal = "{journal}"\n'


class AgentProgram:
    """An agent with its own journal that a test can stop, kill and start again."""

    def __init__(
        self,
        folder: Path,
        config: str,
        *flags: str,
        name: str = "agent",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Take the config, and replace {folder} in it."""
        self.folder = folder
        self.config = folder / f"{name}.toml"
        self.journal = folder / f"{name}.journal"
        self.configure(config)
        self._flags = flags
        self._environment = environment
        self.said: list[str] = []

    def configure(self, config: str) -> None:
        text = config.replace("{folder}", str(self.folder)).replace("{journal}", str(self.journal))
        self.config.write_text(text)

    def __enter__(self) -> "AgentProgram":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        self.spawn()
        self.out.wait_for("watching")

    def spawn(self) -> None:
        """Start it without waiting until it is ready."""
        command = [FOREWARN, "agent", "run", "--config", str(self.config), *self._flags]
        self.process = started(command, self.folder, self._environment)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._other, self.out = Output(self.process.stdout), Output(self.process.stderr)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def _end(self, number: int) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.out.finish()
        self._other.finish()
        self.said += self.out.lines
        return code

    def entries(self) -> list[Entry]:
        return read_entries(self.journal.read_bytes())[1] if self.journal.exists() else []

    def wait_for(self, kind: type[Entry], **fields: Any) -> Entry:
        """Wait until the journal has an entry."""

        def found() -> Entry | None:
            for entry in self.entries():
                if isinstance(entry, kind) and all(
                    getattr(entry, key) == value for key, value in fields.items()
                ):
                    return entry
            return None

        try:
            return until(found, what=f"{kind.__name__} {fields}")  # type: ignore[return-value]
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.out.text}") from None

    def is_clear(self) -> bool:
        return not read(self.journal.read_bytes())[1]


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def json_lines(lines: Sequence[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


@contextmanager
def serving(tmp_path: Path) -> Iterator[Program]:
    """Serve the sample fleet, with a port for each machine."""
    folder = tmp_path / "service"
    folder.mkdir()
    with Program(folder, "--fleet", sample_fleet(folder, ports=True)) as program:
        _enable(program)
        yield program


def _enable(service: Program) -> None:
    """Poll for every machine. An agent reports ready before its first poll, and events need a poll."""
    ports = re.findall(r"^port = (\d+)$", Path(service.flags[-1]).read_text(), re.MULTILINE)
    for port in ports:
        guest = Guest(f"http://127.0.0.1:{port}")
        with guest.client:
            guest.document()


def port_of(service: Program, machine: str) -> int:
    text = Path(service.flags[-1]).read_text()
    found = re.search(rf'name = "{machine}"\n(?:.+\n)*?port = (\d+)', text)
    assert found is not None
    return int(found[1])


def config(service: Program, machine: str, more: str = "") -> str:
    return CONFIG.replace("{port}", str(port_of(service, machine))).replace("{more}", more)


def agent_of(service: Program, machine: str, folder: Path, *flags: str, more: str = "") -> AgentProgram:
    hook = folder / "hook"
    hook.write_text(HOOK.replace("{folder}", str(folder)))
    hook.chmod(0o755)
    return AgentProgram(folder, config(service, machine, more), *flags)
