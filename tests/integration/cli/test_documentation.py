"""Every command of the documents works as printed, except for the ports, which tests must not share."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from forewarn.cli.main import LazyCommand, app
from forewarn.core.basic_types import Kind
from tests.helpers.programs.process import Program, sample_fleet, shell_function
from tests.helpers.programs.receiver import receiving

ROOT = Path(__file__).parents[3]
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
# In a script: a file that it writes, and each `forewarn` with its arguments.
WRITTEN_FILE = re.compile(r"<<'?END'?\n.*?^END$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:^|[|&;(]) *(?:\w+=\S+ )*forewarn((?: [^|&;<>()#\n]+)?)", re.MULTILINE)


def ports_of(fleet: Path) -> dict[str, str]:
    """Map each port of the sample fleet to the port of this test."""
    sample = re.findall(r"^port = (\d+)$", (ROOT / "examples/fleet.toml").read_text(), re.MULTILINE)
    return dict(zip(sample, re.findall(r"^port = (\d+)$", fleet.read_text(), re.MULTILINE), strict=True))


def blocks(document: Path) -> list[str]:
    """Return the shell blocks of a document for the second terminal."""
    found = re.findall(r"```sh\n(.*?)```", document.read_text(), re.DOTALL)
    return [block for block in found if not block.startswith("make ")]


def test_the_tutorial_works_as_printed(tmp_path: Path) -> None:
    fleet = sample_fleet(tmp_path, ports=True)
    with Program(tmp_path, "--fleet", fleet) as program:
        script = "\n".join(blocks(ROOT / "docs/get-started.md"))
        for printed, real in ports_of(fleet).items():
            script = script.replace(f":{printed}/", f":{real}/")
        # An alias works only in an interactive shell; a script needs a function.
        script = script.replace("alias forewarn=.venv/bin/forewarn", shell_function())
        said = typed(script, tmp_path, FOREWARN_SERVER=program.operators)
        assert '"EventStatus":"Started"' in said
        assert "update domain 1 waits for domain 0" in said


def test_the_front_page_shows_the_output_of_the_program(tmp_path: Path) -> None:
    (block,) = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    commands = re.findall(r"^\$ (.*)$", block, re.MULTILINE)
    fleet = sample_fleet(tmp_path, ports=True)
    with Program(tmp_path, "--fleet", fleet) as program:
        printed = ""
        for command in commands:
            script = f"{shell_function()}\n{command}".replace(".venv/bin/forewarn", "forewarn")
            for shown, real in ports_of(fleet).items():
                script = script.replace(f":{shown}/", f":{real}/")
            output = typed(script, tmp_path, FOREWARN_SERVER=program.operators)
            printed += f"$ {command}\n{output.rstrip()}\n\n"
    assert normalized(printed) == normalized(block)


def normalized(transcript: str) -> str:
    """Replace ids by their order, times by a placeholder, and the path of the program by its name."""
    ids: dict[str, str] = {}
    text = re.sub(
        r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}",
        lambda found: ids.setdefault(found[0], f"ID-{len(ids)}"),
        transcript,
    )
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", "TIME", text)
    return re.sub(r"\S*bin/forewarn( --server \S+)?", "forewarn", text).strip()


def test_a_team_gets_its_project_as_printed(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        script = "\n".join(blocks(ROOT / "docs/deploy/projects-and-tokens.md"))
        script = f"{shell_function()}\n{script}"
        said = typed(script, tmp_path, FOREWARN_SERVER=program.operators, FOREWARN_CLOCK="manual")
        assert "shop-1: redeploy ordered" in said
        assert "approved and has started" in said
        assert "hosts are the operator's" in said
        assert "no such machine" in said
        assert "Token anna revoked." in said


def test_a_host_is_gated_as_printed(tmp_path: Path) -> None:
    playbook = tmp_path / "reboot-host.sh"
    playbook.write_text('#!/bin/sh\necho "rebooting $1: $FOREWARN_MACHINES" >> playbook.log\n')
    playbook.chmod(0o755)
    # Fifteen minutes of notice pass in 1.5 seconds.
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), clock="x600") as program:
        script = "\n".join(blocks(ROOT / "docs/operate/gate-a-host.md"))
        script = script.replace("http://127.0.0.1:8170", program.operators)
        said = typed(f"{shell_function()}\n{script}", tmp_path, FOREWARN_SERVER=program.operators)
        assert "rebooting host-2: " in (tmp_path / "playbook.log").read_text()
        assert '"driver":"external"' in said
        assert "holidays" in said


def test_records_are_followed_as_printed(tmp_path: Path) -> None:
    with receiving() as receiver, Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        script = "\n".join(blocks(ROOT / "docs/operate/follow-events.md"))
        script = script.replace("http://127.0.0.1:8170", program.operators)
        script = script.replace("https://chat.example/hooks/ops", receiver.url)
        # A stream does not end; a person interrupts it.
        script = re.sub(r"^(curl -N .*)$", r"timeout 1 \1 || test $? = 124", script, flags=re.MULTILINE)
        said = typed(f"{shell_function()}\n{script}", tmp_path, FOREWARN_SERVER=program.operators)
        assert "The webhook accepted the call." in said
        assert receiver.taken


def test_a_store_is_backed_up_and_copied_as_printed(tmp_path: Path) -> None:
    _, save, move = blocks(ROOT / "docs/operate/back-up-and-restore.md")
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)):
        assert "Copied the store" in typed(f"{shell_function()}\n{save}", tmp_path)
    script = move.replace("postgresql://forewarn@db.example/forewarn", "copied.db")
    typed(f"{shell_function()}\n{script}", tmp_path)
    assert (tmp_path / "copied.db").exists()


def typed(script: str, folder: Path, **environment: str) -> str:
    """Run a script in an interactive shell, and return its output."""
    inherited = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_has_a_target(document: str) -> None:
    path = ROOT / document
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", path.read_text()):
        linked = path.parent / target if target else path
        assert linked.exists(), f"{document} links to {target}"
        assert not anchor or anchor in anchors(linked), f"{document} links to {target}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_printed_command_exists(document: str) -> None:
    text = (ROOT / document).read_text()
    shell = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
    for block in shell.findall(text):
        for words in commands_of(block):
            parse(words, whole=True)
    if re.match("docs/(deploy|operate|workloads)/", document):
        for said in re.findall(r"`forewarn ([^`>…|]+)", FENCED.sub("", text)):
            parse(shlex.split(said), whole=False)


def commands_of(script: str) -> Iterator[list[str]]:
    """Return the arguments of each `forewarn` in a script, except in files that the script writes."""
    script = WRITTEN_FILE.sub("", script).replace("\\\n", " ")
    for said in COMMAND.findall(script):
        yield shlex.split(said)


def parse(words: list[str], *, whole: bool) -> None:
    """Parse a command without running it. In prose, its arguments may be omitted."""
    command: Any = app
    rest = words
    while hasattr(command, "commands"):
        context = command.make_context("forewarn", rest, resilient_parsing=True)
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        assert rest[0] in command.commands, f"forewarn {' '.join(words)}"
        command, rest = command.commands[rest[0]], rest[1:]
        command = command.load() if isinstance(command, LazyCommand) else command
    try:
        command.make_context("forewarn", rest)
    except click.MissingParameter:
        if whole:
            raise


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_named_file_exists(document: str) -> None:
    for name in re.findall(
        r"`((?:src|tests|bench|docs|examples|packaging)/[\w./-]+\.\w+)`", (ROOT / document).read_text()
    ):
        assert (ROOT / name).exists(), f"{document} names {name}"


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_kind_of_record_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/orders-and-events.md").read_text()
    listed = re.findall(r"`([a-z-]+)`", text[text.index("## Records") : text.index("### Topics")])
    assert {kind.value for kind in Kind} <= set(listed)
