"""`forewarn watch` against real servers: its output, and restarts of the server."""

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.programs.process import (
    FOREWARN,
    Output,
    Program,
    ending,
    free_port,
    run,
    sample_fleet,
    started,
    until,
)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        yield program


@contextmanager
def watching(
    program: Program, folder: Path, *words: str, **environment: str
) -> Iterator[tuple[Output, Output]]:
    """Run `watch` during the test, and interrupt it as Ctrl-C does. It must exit successfully."""
    given = {"FOREWARN_SERVER": program.operators, **environment}
    with ending(started([FOREWARN, "watch", *words], folder, given)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = Output(process.stdout), Output(process.stderr)
        yield out, err
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, err.text
        out.finish()
        err.finish()
        assert "Traceback" not in err.text


def repeat_until_shown(program: Program, out: Output, act: Callable[[int], object], text: str) -> None:
    """Repeat an action until `watch` shows it, because the test cannot see when the stream is open."""
    count = iter(range(10_000))
    until(lambda: act(next(count)) and any(text in line for line in out.lines), what=text)


def cordon(program: Program) -> Callable[[int], object]:
    return lambda count: program.post(f"/v1/hosts/host-3/{('cordon', 'uncordon')[count % 2]}")


def test_one_frame_shows_machines_events_holds_and_rollouts(program: Program, tmp_path: Path) -> None:
    program.post("/v1/machines/web-0/freeze")
    program.call("POST", "/v1/holds", json={"reason": "a storm", "host": "host-3"})
    program.post("/v1/rollouts", json={"hosts": ["host-2"], "action": "reboot"})
    program.advance(28)
    said = run(tmp_path, "watch", "--once", "--server", program.operators).stdout
    assert re.search(r"Freeze +Scheduled, simulated +in 14 m 32 s +web UD 0 +web-0$", said, re.MULTILINE)
    assert re.search(r"^  UD 0  ▲ web-0  ● web-3$", said, re.MULTILINE)
    assert "HELD  host host-3: a storm (operator, 28 s ago)" in said
    assert re.search(
        r"rollout .* reboot  running, simulated  ░+ 0 of 1 wave  web: update domain 1 waits", said
    )
    assert "14 machines (14 running)   3 hosts (3 ok)   1 event" in said
    program.advance(900)
    assert "◐ web-0" in run(tmp_path, "watch", "--once", "--server", program.operators).stdout


def test_an_order_announced_for_the_third_time_is_shown_as_stuck(program: Program, tmp_path: Path) -> None:
    order = program.post("/v1/hosts/host-3/maintenance", json={"action": "reboot"})["order"]["id"]
    for _ in range(2):
        hold = program.post("/v1/holds", json={"reason": "a storm"})["hold"]["id"]
        program.advance(50 * 60)
        program.post(f"/v1/holds/{hold}/release")
        program.advance(1)
    shown = program.get(f"/v1/orders/{order}")["order"]
    assert (shown["state"], shown["stuck"]) == ("announced", True)
    stuck = "announced 3 times without a start; see what it waits for, or cancel it"
    assert shown["waiting"][0] == {"what": f"order {order}", "reason": stuck}
    said = run(tmp_path, "watch", "--once", "--server", program.operators).stdout
    assert f"STUCK maintenance of host-3 (order {order}): {stuck}" in " ".join(said.split())
    metrics = program.call("GET", "/metrics").text
    assert "forewarn_orders_stuck 1.0" in metrics


def test_a_frame_may_be_json(program: Program, tmp_path: Path) -> None:
    event = program.post("/v1/machines/web-0/freeze")["event"]["id"]
    said = json.loads(run(tmp_path, "watch", "--once", "--json", "--server", program.operators).stdout)
    assert [each["id"] for each in said["events"]] == [event]
    assert len(said["machines"]) == 14


def test_filters_limit_the_frame(program: Program, tmp_path: Path) -> None:
    program.post("/v1/machines/web-0/freeze")
    program.post("/v1/machines/batch_1/freeze")

    def shown(*words: str) -> Any:
        return json.loads(
            run(tmp_path, "watch", "--once", "--json", *words, "--server", program.operators).stdout
        )

    assert {each["group"] for each in shown("--group", "web")["machines"]} == {"web"}
    assert [each["resources"] for each in shown("--group", "web")["events"]] == [["web-0"]]
    assert {each["host"] for each in shown("--host", "host-2")["machines"]} == {"host-2"}
    for what, name in (("group", "wed"), ("host", "host-9"), ("project", "nobody")):
        refused = run(tmp_path, "watch", f"--{what}", name, "--server", program.operators)
        assert refused.returncode == 1
        assert f'{what} "{name}" does not exist' in refused.stderr


def test_each_change_is_a_line_of_json(program: Program, tmp_path: Path) -> None:
    with watching(program, tmp_path, "--json") as (out, _):
        repeat_until_shown(program, out, cordon(program), "host-changed")
        event = program.post("/v1/machines/web-0/freeze")["event"]["id"]
        out.wait_for('"event-scheduled"')
    records = [json.loads(line) for line in out.lines]
    assert event in [record["event"] for record in records]
    numbers = [record["number"] for record in records]
    assert numbers == sorted(set(numbers))


def test_filters_apply_to_changes_too(program: Program, tmp_path: Path) -> None:
    def restart(count: int) -> object:
        return program.post(
            f"/v1/hosts/{('host-1', 'host-2')[count % 2]}/{('cordon', 'uncordon')[count // 2 % 2]}"
        )

    with watching(program, tmp_path, "--json", "--host", "host-2") as (out, _):
        repeat_until_shown(program, out, restart, "host-changed")
    assert {json.loads(line)["host"] for line in out.lines} == {"host-2"}


def test_a_watch_continues_after_a_restart_of_the_server(tmp_path: Path) -> None:
    place = f"127.0.0.1:{free_port()}"
    with (
        Program(tmp_path, "--fleet", sample_fleet(tmp_path), operator=place) as program,
        watching(program, tmp_path) as (out, err),
    ):
        repeat_until_shown(program, out, cordon(program), "host-changed")
        program.kill()
        err.wait_for("reconnecting: ")
        program.start()
        err.wait_for("connected again")
        program.post("/v1/machines/web-0/freeze")
        out.wait_for("event-scheduled")


def test_a_watch_polls_each_second_if_the_stream_is_refused(program: Program, tmp_path: Path) -> None:
    operator = {"FOREWARN_SERVER": program.operators}
    words = ("token", "create", "--name", "anna", "--role")
    boss = run(tmp_path, *words[:3], "boss", "--role", "operator", environment=operator).stdout.strip()
    operator["FOREWARN_TOKEN"] = boss
    user = run(tmp_path, *words, "user", "--project", "default", environment=operator).stdout.strip()
    headers = {"Authorization": f"Bearer {boss}"}

    def change(count: int) -> object:
        body = {"tags": {"count": str(count)}}
        return program.call("PUT", "/v1/machines/web-0", headers=headers, json=body).is_success

    with watching(program, tmp_path, "--json", FOREWARN_TOKEN=user) as (out, _):
        repeat_until_shown(program, out, change, "machine-changed")
    frame = run(tmp_path, "watch", "--once", environment={**operator, "FOREWARN_TOKEN": user}).stdout
    assert "14 machines" in frame
    assert "hosts" not in frame


def test_a_watch_without_a_required_token_is_refused(program: Program, tmp_path: Path) -> None:
    here = {"FOREWARN_SERVER": program.operators}
    run(tmp_path, "token", "create", "--name", "boss", "--role", "operator", environment=here)
    refused = run(tmp_path, "watch", environment=here)
    assert refused.returncode == 1
    assert "token" in refused.stderr


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50), (40, 10), (200, 8)])
def test_a_frame_fits_a_terminal_of_any_size(
    program: Program, tmp_path: Path, width: int, height: int
) -> None:
    program.post("/v1/machines/web-0/freeze")
    screen = drawn(program, tmp_path, width, height, lambda text: "web-0" in text and "live" in text)
    lines = screen.split("\n")
    assert len(lines) <= height
    assert max(len(line) for line in lines) <= width
    assert "live" in lines[0]
    assert any("Freeze" in line for line in lines)


def test_a_terminal_of_eighty_columns_shows_whole_sentences(program: Program, tmp_path: Path) -> None:
    why = "a change freeze over the holidays, as every year since the fire in the cellar"
    program.call("POST", "/v1/holds", json={"reason": why, "host": "host-3"})
    program.post("/v1/hosts/host-1/maintenance", json={"action": "reboot"})
    program.post("/v1/hosts/host-2/maintenance", json={"action": "reboot"})
    screen = drawn(program, tmp_path, 80, 40, lambda text: "cellar" in text and "live" in text)
    assert max(map(len, screen.split("\n"))) <= 80
    assert "…" not in screen
    text = " ".join(screen.split())
    assert f"HELD host host-3: {why} (operator, now)" in text
    (waiting,) = {
        each["reason"]
        for order in program.all("orders")
        for each in order["waiting"]
        if "waits" in each["reason"]
    }
    assert waiting in text


def drawn(program: Program, folder: Path, width: int, height: int, ready: Callable[[str], bool]) -> str:
    """Run `watch` on a terminal, and return the screen when it is complete."""
    master, slave = pty.openpty()
    environment = {
        **os.environ,
        "FOREWARN_SERVER": program.operators,
        "COLUMNS": str(width),
        "LINES": str(height),
        "TERM": "xterm",
    }
    process = subprocess.Popen(
        [FOREWARN, "watch"], cwd=folder, env=environment, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    seen = ""

    def frame() -> str:
        nonlocal seen
        seen += os.read(master, 65536).decode(errors="replace")
        # Each frame begins at the upper left corner.
        frames = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", each) for each in seen.split("\x1b[H")]
        whole = [each.replace("\r", "") for each in frames[:-1] if ready(each)]
        return whole[-1].rstrip() if whole else ""

    try:
        found = until(frame, what="a frame")
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            try:
                os.read(master, 65536)
            except OSError:
                break
        assert process.wait(60) == 0
        return found
    finally:
        process.kill()
        process.wait()
        os.close(master)
