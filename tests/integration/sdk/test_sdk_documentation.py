"""Every command and program in the documentation of the SDK works as printed, except for the ports."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import forewarn
from tests.helpers.programs.process import Program, sample_fleet, shell_function
from tests.helpers.service.scripted import answer, scripted
from tests.integration.cli.test_documentation import ports_of

DOCS = Path(__file__).parents[3] / "docs"


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / document).read_text(), re.DOTALL)


@pytest.mark.parametrize("fresh", [True, False], ids=["fresh fleet", "fleet with a past"])
def test_the_how_to_works_as_printed(tmp_path: Path, fresh: bool) -> None:
    fleet = sample_fleet(tmp_path, ports=True)
    (program,) = blocks("workloads/python.md", "python")
    (script,) = blocks("workloads/python.md", "sh")
    (expected,) = blocks("workloads/python.md", "text")
    (tmp_path / "watch.py").write_text(program)
    for printed, real in ports_of(fleet).items():
        script = script.replace(f":{printed}", f":{real}")
    functions = f'{shell_function()}\npython() {{ {sys.executable} "$@"; }}\n'
    with Program(tmp_path, "--fleet", fleet) as served:
        if not fresh:
            served.at_port(int(ports_of(fleet)["8300"])).document()
            served.post("/v1/machines/web-0/restart")
            served.advance(3600)
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", functions + script],
            cwd=tmp_path,
            env=os.environ | {"FOREWARN_SERVER": served.operators},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith(expected)


def test_the_program_of_the_reference_compiles() -> None:
    program, _ = blocks("reference/sdk.md", "python")
    compile(program, "sdk.md", "exec")


def test_the_asyncio_program_works_as_printed() -> None:
    _, program = blocks("reference/sdk.md", "python")
    with scripted(answer(200, b'{"DocumentIncarnation":3,"Events":[]}')) as endpoint:
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"FOREWARN_ENDPOINT": endpoint.url},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert (ran.stdout, ran.stderr) == ("0 events, incarnation 3\n", "")


@pytest.mark.parametrize("name", sorted(forewarn._HOMES))
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert getattr(forewarn, name).__name__ == name
    assert name in dir(forewarn)
    assert f"`{name}" in (DOCS / "reference/sdk.md").read_text()


def test_importing_forewarn_imports_nothing_else() -> None:
    check = (
        "import sys, forewarn; print([m for m in sys.modules if m.startswith('forewarn.') or m == 'httpx'])"
    )
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['forewarn.lazy']"


def test_an_unknown_public_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="weather"):
        _ = forewarn.weather
