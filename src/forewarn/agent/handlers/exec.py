"""`exec`: a program for each side, or a folder of programs.

A program gets the event in the environment and as JSON on stdin. Exit code 0 means ready, 75 means "try
again", and any other code means failure.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handling import WORK, Command, Never, Outcome, Ready, Side, Task
from forewarn.core.errors import Invalid
from forewarn.platform import system
from forewarn.wire import fields
from forewarn.wire.texts import NAME_RULE, is_name, shown

# Copies that editors and package managers leave beside a program.
_COPY = re.compile(r"~$|^#|\.(bak|old|orig|rej|save|swp|tmp|dpkg-[a-z]+|ucf-[a-z]+|rpm[a-z]+)$")


def command(value: object) -> tuple[str, ...]:
    """Read a program and its arguments."""
    words = value if isinstance(value, list) else []
    if not words or not all(isinstance(word, str) and word and "\0" not in word for word in words):
        raise Invalid(
            f'expected a list of texts, such as ["/etc/forewarn/drain", "--now"], got {shown(value)}'
        )
    return tuple(words)


def _folder(value: object) -> Path:
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise Invalid(f"expected the absolute path of a folder, got {shown(value)}")
    return Path(value)


def _user(value: object) -> str:
    if not system.HAS_USERS:
        raise Invalid(f"{system.cannot_become(str(value))}: leave it out")
    return fields.name(value)


def _environment(value: object) -> dict[str, str]:
    """Read variables; errors do not show their values, which may be secrets."""
    found = fields.table(value)
    for name, each in found.items():
        if not name or "=" in name or "\0" in name:
            raise Invalid(f"expected names of variables, got {shown(name)}")
        if not isinstance(each, str) or "\0" in each:
            raise Invalid(f"{name}: expected a text")
    return {name: str(each) for name, each in found.items()}


READERS = {
    "prepare": command,
    "recover": command,
    "hooks": _folder,
    "environment": _environment,
    "secrets": _environment,
    "user": fields.optional(_user),
}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Create a handler with two commands, or one handler for each program of a folder."""
    environment, secrets = options.get("environment", {}), options.get("secrets", {})
    if twice := sorted(environment.keys() & secrets.keys()):
        raise Invalid(f"secrets: {twice[0]} is also in environment: remove one of them")
    more: dict[str, Any] = {"environment": {**environment, **secrets}, "user": options.get("user")}
    commands = {Side(side): options[side] for side in ("prepare", "recover") if side in options}
    if "hooks" not in options:
        if not commands:
            raise Invalid("expected a command in prepare or recover, or a folder in hooks")
        return [Declared(does=Exec(commands=commands, **more))]
    if commands:
        raise Invalid("hooks: expected either hooks or prepare and recover, got both")
    hooks, skipped = _hooks(options["hooks"])
    return [
        Declared(
            suffix=f"/{path.name}",
            does=Exec(commands={side: (str(path), side.value) for side in WORK}, **more),
            remarks=skipped if path is hooks[0] else (),
        )
        for path in hooks
    ]


def _hooks(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the programs of a folder by name, and the reasons why other files are skipped."""
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise Invalid(f"hooks: {folder} cannot be read: {error.strerror}") from None
    faults = {path: _no_hook(path) for path in files}
    skipped = [f"{path} is skipped: {why}" for path, why in faults.items() if why]
    hooks = [path for path, why in faults.items() if why is None]
    if not hooks:
        why = "; ".join(skipped) or "it is empty"
        raise Invalid(f"hooks: there is no program in {folder}: {why}")
    return hooks, skipped


def _no_hook(path: Path) -> str | None:
    """Return why a file of a folder is not a hook."""
    if path.name.startswith("."):
        return "it is hidden"
    if _COPY.search(path.name):
        return "its name is that of a backup copy"
    if not is_name(path.name):
        return f"expected a name of {NAME_RULE}"
    if not path.is_file():
        return "it is not a file"
    return None if os.access(path, os.X_OK) else f"it is not executable: `chmod +x {path}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exec:
    """Runs a program."""

    commands: Mapping[Side, Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None

    async def prepare(self, task: Task) -> Outcome:
        """Run the command of the task's side."""
        words = self.commands.get(task.side)
        if words is None:
            return Ready()
        if refusal := refused(words[0]):
            return Never(refusal)
        return await task.run(Command(words=words, environment=self.environment, user=self.user))

    recover = prepare

    def describe(self, side: Side) -> str:
        """Describe the command."""
        words = self.commands.get(side)
        if words is None:
            return ""
        return f"runs {' '.join(words)}" + (f" as {self.user}" if self.user else "")

    def problems(self) -> Sequence[str]:
        """Return the programs that cannot run."""
        found = [refused(words[0]) for words in self.commands.values()]
        if self.user is not None and (why := system.cannot_become(self.user)):
            found.append(f"user: {why}")
        return [problem for problem in dict.fromkeys(found) if problem]


def refused(program: str) -> str | None:
    """Return why a program must not or cannot run."""
    path = shutil.which(program)
    if path is None:
        exists = os.path.exists(program)
        return f"{program} is not executable: `chmod +x {program}`" if exists else f"{program} does not exist"
    return system.others_can_change(Path(path))
