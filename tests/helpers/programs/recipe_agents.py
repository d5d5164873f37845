"""Agents that run a recipe of `examples/` unchanged, except for its paths."""

import re
import shutil
from pathlib import Path

from forewarn.agent.setup import recipe
from tests import ROOT
from tests.helpers.programs.agent_program import AgentProgram, port_of
from tests.helpers.programs.process import Program, run

EXAMPLES = ROOT / "examples"
# Two events from notice to end, at sixty times normal speed, with a wide margin.
REHEARSAL_SECONDS = 240.0


def installed(name: str, folder: Path, **places: str) -> str:
    """Copy a recipe's programs into a folder, and return its config with replaced paths.

    Only paths that appear in the config can be replaced.
    """
    for program in recipe.programs(name):
        shutil.copy(EXAMPLES / name / program, folder / program)
    return moved((EXAMPLES / name / recipe.CONFIG).read_text(), {recipe.HOME: str(folder)} | places)


def moved(text: str, places: dict[str, str]) -> str:
    """Replace paths in a text."""
    for old, new in places.items():
        assert old == recipe.HOME or old in text, f"{old} is not in\n{text}"
        text = text.replace(old, new)
    return text


def agent_with(
    name: str,
    *flags: str,
    service: Program,
    machine: str,
    folder: Path,
    places: dict[str, str] | None = None,
) -> AgentProgram:
    """Create an agent of a machine that runs a recipe."""
    own = (
        *("--endpoint", f"http://127.0.0.1:{port_of(service, machine)}"),
        *("--journal", str(folder / f"{machine}.journal")),
    )
    return AgentProgram(folder, installed(name, folder, **(places or {})), *own, *flags, name=machine)


def rehearsed(name: str, folder: Path, places: dict[str, str] | None = None) -> str:
    """Rehearse a recipe with the command of its README. It must succeed; return the output."""
    (folder / recipe.CONFIG).write_text(installed(name, folder, **(places or {})))
    (command,) = re.findall(r"^forewarn (agent rehearse .*)", readme(name), re.MULTILINE)
    ran = run(folder, *command.split(), within=REHEARSAL_SECONDS)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("As expected.") == 2, ran.stdout
    return ran.stdout


def readme(name: str) -> str:
    """Return the README of a recipe."""
    return (EXAMPLES / name / "README.md").read_text()
