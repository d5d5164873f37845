"""The night of docs/operate/night-of-maintenance.md happens as printed, command by command."""

import re
import shlex
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forewarn.cli.main import app
from forewarn.core.model.clock_slew import TimeKind
from forewarn.store.store import open_store
from tests.helpers.database import stores
from tests.helpers.database.transactions import writing
from tests.helpers.programs.process import Program, until

ROOT = Path(__file__).parents[3]
HOW_TO = ROOT / "docs/operate/night-of-maintenance.md"
# Three hours before the window opens in Berlin.
EVENING = datetime(2027, 3, 1, 18, tzinfo=UTC)
NEVER_BACK = "kvm05"
HOOK = f"""#!/bin/sh
test "$FOREWARN_HOOK $FOREWARN_HOST" = "work {NEVER_BACK}" && exit 75
exit 0
"""
MINUTE = 60


def _printed(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
    return [block for block in found if not block.startswith("make ")]


def _set_evening(url: str) -> None:
    store = open_store(url, new_id=lambda: "D0000000-0000-4000-8000-000000000000")
    with writing(store) as tx:
        tx.time.set_reached(EVENING)
        tx.time.set_kind(TimeKind.TURNED)
    store.close()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """The fleet of the page, with hooks. One hook never returns."""
    stores.prepared_sqlite(tmp_path, "the evening of a night", _set_evening)
    (settings,) = _printed("toml")
    (tmp_path / "forewarn.toml").write_text(settings.replace("/etc/forewarn/hooks", str(tmp_path)))
    for name in re.findall(r"hooks/([\w-]+)", settings):
        hook = tmp_path / name
        hook.write_text(HOOK)
        hook.chmod(0o755)
    fleet = ROOT / "examples/night.toml"
    with Program(tmp_path, "--config", tmp_path / "forewarn.toml", "--fleet", fleet) as program:
        monkeypatch.setenv("FOREWARN_SERVER", program.operators)
        monkeypatch.chdir(tmp_path)
        yield program


def _typed(block: str) -> str:
    """Run the commands of a block, and return their output."""
    said = []
    for line in block.splitlines():
        name, *words = shlex.split(line)
        assert name == "forewarn"
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (line, result.output)
        said.append(result.stdout)
    return "".join(said)


def _pass_time(program: Program, until_: Callable[[], object]) -> None:
    """Advance the clock until a condition holds. Hooks finish in between."""
    for _ in range(150):
        if until_():
            return
        program.advance(5 * MINUTE)
        until(lambda: not _at_work(program), what="hooks come to their end")
    raise AssertionError("that did not come to pass")


def _open(program: Program) -> list[Any]:
    return list(program.get("/v1/orders", params={"open": True})["orders"])


def _at_work(program: Program) -> list[Any]:
    """Return the steps whose hooks are about to end."""
    return [
        step
        for order in _open(program)
        for step in order["host_steps"]
        if step["state"] == "running" and order["host"] != NEVER_BACK
    ]


def _state(program: Program, host: str) -> str:
    return str(program.get(f"/v1/hosts/{host}")["host"]["state"])


def _leaves(program: Program, host: str) -> bool:
    on_host = (order for order in _open(program) if order["host"] == host)
    stages = [order["stages"][0] for order in on_host if order["stages"]]
    return any((stage["kind"], stage["state"]) == ("evacuate", "started") for stage in stages)


def test_the_night_happens_as_printed(program: Program, tmp_path: Path) -> None:
    fit, plan, start, look, moves, degrade, lost, wait, fail, stop, go_on, morning, after = _printed("sh")
    shown, _, choices = _printed("text")
    assert shown.strip() in _typed(fit)
    planned = _typed(plan)
    assert "outside the window of project shop, which opens 2027-03-01 22:00 (Europe/Berlin)" in planned
    assert "db-0: cannot leave its host, and restarts with it" in planned
    _typed(start)
    _pass_time(program, lambda: _leaves(program, "kvm01"))
    assert "5 planned ·, 1 being emptied →" in _typed(look)
    _typed(moves)
    assert "Redeploy in 7 d" in _typed(degrade)
    _pass_time(program, lambda: _state(program, NEVER_BACK) == "lost")
    said = _typed(lost)
    assert all(line in said for line in choices.splitlines())
    assert "kvm05: waiting for the host, until" in _typed(wait)
    _pass_time(program, lambda: _state(program, NEVER_BACK) == "lost")
    assert "resumed." in _typed(fail)
    _pass_time(program, lambda: _leaves(program, "kvm04"))
    assert "is being cancelled" in _typed(stop)
    assert "released." in _typed(go_on)
    program.advance(6 * 60 * MINUTE)
    said = _typed(morning)
    assert "3 done ✓" in said
    assert "2 skipped ⊘" in said
    assert "kvm05" in (tmp_path / "night.csv").read_text()
    assert "lost" not in _typed(after)
