"""`exec`: a program for each side, or a folder of them.

The event comes in the environment and as JSON on stdin. Exit code 0 is ready, 75 is "try again", any other is
"never".
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

# What editors and package managers leave beside a program, which is not meant to be run.
_COPY = re.compile(r"~$|^#|\.(bak|old|orig|rej|save|swp|tmp|dpkg-[a-z]+|ucf-[a-z]+|rpm[a-z]+)$")


def command(value: object) -> tuple[str, ...]:
    """Read a program and its arguments."""
    words = value if isinstance(value, list) else []
    if not words or not all(isinstance(word, str) and word and "\0" not in word for word in words):
        raise Invalid(f'expected a list of texts, as ["/etc/forewarn/drain", "--now"], got {shown(value)}')
    return tuple(words)


def _folder(value: object) -> Path:
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise Invalid(f"expected the path of a folder, from the root, got {shown(value)}")
    return Path(value)


def _user(value: object) -> str:
    if not system.HAS_USERS:
        raise Invalid(f"{system.cannot_become(str(value))}: leave it out")
    return fields.name(value)


def _environment(value: object) -> dict[str, str]:
    """Read variables of any length, without showing what they hold: it may be a secret."""
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
    """Make a handler of two commands, or one for each program of a folder."""
    environment, secrets = options.get("environment", {}), options.get("secrets", {})
    if twice := sorted(environment.keys() & secrets.keys()):
        raise Invalid(f"secrets: expected {twice[0]} there or in environment, got both")
    more: dict[str, Any] = {"environment": {**environment, **secrets}, "user": options.get("user")}
    commands = {Side(side): options[side] for side in ("prepare", "recover") if side in options}
    if "hooks" not in options:
        if not commands:
            raise Invalid("prepare: expected a command there, in recover or in hooks, but there is none")
        return [Declared(does=Exec(commands=commands, **more))]
    if commands:
        raise Invalid("hooks: expected either a folder or commands in prepare and recover, got both")
    hooks, left_out = _hooks(options["hooks"])
    return [
        Declared(
            suffix=f"/{path.name}",
            does=Exec(commands={side: (str(path), side.value) for side in WORK}, **more),
            remarks=left_out if path is hooks[0] else (),
        )
        for path in hooks
    ]


def _hooks(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the programs of a folder by name, and why the other files are left out."""
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise Invalid(f"hooks: {folder} cannot be read: {error.strerror}") from None
    faults = {path: _no_hook(path) for path in files}
    left_out = [f"{path} is left out: {why}" for path, why in faults.items() if why]
    hooks = [path for path, why in faults.items() if why is None]
    if not hooks:
        why = "; ".join(left_out) or "it is empty"
        raise Invalid(f"hooks: expected programs in {folder}, but there is none: {why}")
    return hooks, left_out


def _no_hook(path: Path) -> str | None:
    """Return why a file is not one of the programs that a folder is for."""
    if path.name.startswith("."):
        return "it is hidden"
    if _COPY.search(path.name):
        return "its name is that of a copy, as editors and package managers leave them"
    if not is_name(path.name):
        return f"expected a name of {NAME_RULE}"
    if not path.is_file():
        return "it is no file"
    return None if os.access(path, os.X_OK) else f"it is not executable: `chmod +x {path}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exec:
    """Runs a program."""

    commands: Mapping[Side, Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None

    async def prepare(self, task: Task) -> Outcome:
        """Run the command for the task's side."""
        words = self.commands.get(task.side)
        if words is None:
            return Ready()
        if refusal := refused(words[0]):
            return Never(refusal)
        return await task.run(Command(words=words, environment=self.environment, user=self.user))

    recover = prepare

    def describe(self, side: Side) -> str:
        """Describe the program that it would run."""
        words = self.commands.get(side)
        if words is None:
            return ""
        return f"runs {' '.join(words)}" + (f" as {self.user}" if self.user else "")

    def problems(self) -> Sequence[str]:
        """Return which programs would be refused, and why they cannot be run as their user."""
        found = [refused(words[0]) for words in self.commands.values()]
        if self.user is not None and (why := system.cannot_become(self.user)):
            found.append(f"user: {why}")
        return [problem for problem in dict.fromkeys(found) if problem]


def refused(program: str) -> str | None:
    """Return why a program is not run."""
    path = shutil.which(program)
    if path is None:
        exists = os.path.exists(program)
        return f"{program} is not executable: `chmod +x {program}`" if exists else f"{program} does not exist"
    return system.others_can_change(Path(path))
