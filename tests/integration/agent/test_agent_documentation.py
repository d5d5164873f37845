"""The agent's how-to runs as printed, and its reference is complete."""

import re
import subprocess
from pathlib import Path

from forewarn.agent import facts
from forewarn.agent.handlers import kinds
from forewarn.agent.setup.agent_config import _AGENT, _HANDLER, _WHEN, parse
from tests.helpers.programs.process import shell_function

DOCS = Path(__file__).parents[3] / "docs"
REFERENCE = (DOCS / "reference/agent.md").read_text()


def test_the_how_to_runs_as_printed(tmp_path: Path) -> None:
    text = (DOCS / "workloads/agent.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"umask 022; {shell_function()}\n{script}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "agent.toml is valid." in ran.stdout
    assert ran.stdout.count("As expected.") == 2


def test_the_configs_of_the_reference_are_valid() -> None:
    texts = re.findall(r"```toml\n(.*?)```", REFERENCE, re.DOTALL)
    configs = [parse(text, environment={"PGPASSWORD": "hunter22"}) for text in texts]
    assert [config.handlers[0].name for config in configs] == ["drain", "switchover"]
    assert [set(config.secrets) for config in configs] == [set(), {"hunter22"}]


def test_every_field_is_in_the_reference() -> None:
    own = [name for kind in kinds.BUILT_IN for name in kinds.readers_of(kind) or ()]
    for name in (*_AGENT, *_HANDLER, *_WHEN, *own):
        assert f"`{name.replace('_', '-')}`" in REFERENCE, name
    for name in facts.NAMES:
        assert f"`${{{name}}}`" in REFERENCE
