"""Each kind of handler with real programs, requests, mail, load balancers and processes."""

import asyncio
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

import forewarn.agent
from forewarn.agent.handling import Again, Command, Never, Outcome, Ready, Side, Task
from forewarn.agent.setup.agent_config import parse
from forewarn.agent.setup.handler import Handler
from forewarn.platform import system
from forewarn.programs.kept_program import KEEPER, Output
from tests.helpers.programs.agents import MACHINE, AgentHarness, event, settled
from tests.helpers.programs.mail_server import mail_server
from tests.helpers.programs.process import PATIENCE, until
from tests.helpers.programs.receiver import receiving

T = TypeVar("T")


def handlers(text: str, **environment: str) -> list[Handler]:
    return list(parse(text, environment=environment).handlers)


def toml(**fields: Any) -> str:
    """Declare a handler."""
    lines = (f"{key.replace('_', '-')} = {written(value)}" for key, value in fields.items())
    return "\n".join(["[[handlers]]", *lines, ""])


def written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {written(each)}" for key, each in value.items()) + "}"
    return f"[{', '.join(map(written, value))}]" if isinstance(value, list) else json.dumps(value)


def script(folder: Path, body: str, *, name: str = "hook", mode: int = 0o755) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(mode)
    return str(path)


async def awaited(condition: Callable[[], T]) -> T:
    """Wait for an effect of real processes."""
    async with asyncio.timeout(PATIENCE):
        while not (found := condition()):  # noqa: ASYNC110 - nobody announces what processes do
            await asyncio.sleep(0.01)
    return found


async def line_in(path: Path) -> str:
    """Wait for a complete line, because a shell creates the file before it writes."""

    def whole_line() -> str:
        text = path.read_text() if path.exists() else ""
        return text if text.endswith("\n") else ""

    return (await awaited(whole_line)).strip()


def play(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


async def over(harness: AgentHarness) -> None:
    """Remove the event and wait for the recovery."""
    await harness.show()
    await harness.show()
    await awaited(lambda: not harness.journal.tracked_events)
    await harness.stop()


def call_handler(
    handler: Handler,
    side: Side = Side.PREPARE,
    *,
    left: float | None = 900.0,
    owe: Callable[[str], None] = lambda thing: None,
    owed: Sequence[str] = (),
) -> Outcome:
    """Call a handler that runs no program."""

    async def run(command: Command) -> Outcome:
        raise AssertionError(f"it runs {command.words}")

    async def ask() -> Outcome:
        task = Task(
            side=side,
            event=event(),
            machine=MACHINE,
            seconds_left=lambda: left,
            run=run,
            say=lambda line: None,
            owe=owe,
            owed=owed,
        )
        return await (handler.does.prepare(task) if side is Side.PREPARE else handler.does.recover(task))

    return asyncio.run(ask())


# Programs


def test_a_program_gets_the_whole_event(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(
            tmp_path,
            f"cd {tmp_path}; env | grep ^FOREWARN_ | grep -v TEST > env; cat > stdin; echo $1 said",
        )
        harness = AgentHarness(
            tmp_path,
            *handlers(toml(name="drain", kind="exec", prepare=[hook, "one"], environment={"MORE": "x"})),
        )
        harness.start()
        await harness.show(event(description="Host server is undergoing maintenance."))
        await awaited(lambda: harness.endpoint.approved)
        told = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
        assert told == {
            "FOREWARN_ATTEMPT": "1",
            "FOREWARN_EVENT_DESCRIPTION": "Host server is undergoing maintenance.",
            "FOREWARN_EVENT_DURATION": "-1",
            "FOREWARN_EVENT_ID": "A",
            "FOREWARN_EVENT_NOT_BEFORE": "2026-01-05T12:15:00Z",
            "FOREWARN_EVENT_RESOURCES": "web-0",
            "FOREWARN_EVENT_SOURCE": "Platform",
            "FOREWARN_EVENT_STATUS": "Scheduled",
            "FOREWARN_EVENT_TYPE": "Reboot",
            "FOREWARN_MACHINE": "web-0",
            "FOREWARN_SECONDS_LEFT": "900",
            "FOREWARN_SIDE": "prepare",
        }
        written = json.loads((tmp_path / "stdin").read_text())
        assert (written["EventId"], written["NotBefore"]) == ("A", "Mon, 05 Jan 2026 12:15:00 GMT")
        assert "drain | one said" in harness.said
        await over(harness)

    play(main())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("exit 3", "drain: prepare failed: exit code 3"),
        ("kill -9 $$", "drain: prepare failed: killed by signal 9"),
        ("", "drain: prepare ready"),
    ],
)
def test_the_exit_code_decides_the_outcome(tmp_path: Path, body: str, said: str) -> None:
    async def main() -> None:
        harness = AgentHarness(
            tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[script(tmp_path, body)]))
        )
        harness.start()
        await harness.show(event())
        await awaited(lambda: said in harness.said)
        await over(harness)

    play(main())


def test_a_failure_has_the_last_line_of_the_output(tmp_path: Path) -> None:
    async def main() -> None:
        body = 'echo "one moment"; printf "cannot \\033reach hunter22: %01000d\\n\\n" 0 >&2; exit 1'
        table = toml(
            name="drain",
            kind="exec",
            prepare=[script(tmp_path, body)],
            secrets={"PASSWORD": "hunter22"},
        )
        harness = AgentHarness(tmp_path, *handlers(table))
        harness.config = parse(table, environment={})
        harness.start()
        await harness.show(event())
        await awaited(lambda: any("not approved" in line for line in harness.said))
        attempt = harness.journal.tracked_events["A"].attempt(Side.PREPARE, "drain")
        assert attempt is not None
        assert attempt.why.startswith("exit code 1: cannot  reach ***: 000")
        assert len(attempt.why) < 250
        await over(harness)

    play(main())


@pytest.mark.parametrize(
    ("words", "last"), [("echo; echo this is why", "this is why"), ("echo", "an unread line")]
)
def test_long_output_is_shortened_to_its_beginning_and_last_line(
    tmp_path: Path, words: str, last: str
) -> None:
    async def main() -> None:
        said = f"yes 'an unread line' | head -c 30000000; touch {tmp_path}/said; "
        wait = f"while ! test -e {tmp_path}/go; do sleep 0.02; done; "
        hook = script(tmp_path, said + wait + f"{words}; exit 1")
        harness = AgentHarness(tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook])))
        harness.start()
        await harness.show(event())
        await awaited(lambda: (tmp_path / "said").exists())
        (output,) = (tmp_path / "runs").glob("*.output")
        await awaited(lambda: output.stat().st_size < 5_000_000)
        (tmp_path / "go").touch()
        await awaited(lambda: any("prepare failed" in line for line in harness.said))
        assert f"drain: prepare failed: exit code 1: {last}" in harness.said, harness.said[-4:]
        told = [line for line in harness.said if line.startswith("drain | ")]
        assert len(told) == 1002
        (left_out,) = [int(line.split()[2].strip("(")) for line in told if "not shown" in line]
        # Output written while the keeper shortens the file is not counted.
        assert 15_000_000 < left_out < 30_000_000
        assert told[-1] == f"drain | {last}"
        await over(harness)

    play(main())


@pytest.mark.parametrize("said", [b"x" * 200_000, b"\n" * 5000, b"a\r\nb\n" * 10, b"", b"\xff\xfe\n"])
def test_all_output_is_read_once(tmp_path: Path, said: bytes) -> None:
    path, heard = tmp_path / "output", list[str]()
    path.write_bytes(said)
    output = Output(path)
    output.read_new(heard.append)
    output.read_new(heard.append)
    output.finish(heard.append, cut=0, last="")
    assert len(heard) <= 1002
    assert all(len(line) <= 2000 for line in heard)
    if len(said) < 1000:
        assert heard == said.decode(errors="replace").splitlines()


def test_exit_code_75_means_try_again(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(tmp_path, 'test "$FOREWARN_ATTEMPT" = 2 || exit 75')
        harness = AgentHarness(tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook], retry=1)))
        harness.start()
        await harness.show(event())
        await awaited(lambda: "drain: prepare will try again: exit code 75" in harness.said)
        await harness.show(event(description="a change ends the wait"))
        await awaited(lambda: harness.endpoint.approved)
        await over(harness)

    play(main())


def test_a_hanging_program_is_stopped_with_its_children(tmp_path: Path) -> None:
    async def main() -> None:
        deaf = "trap '' TERM"
        body = f"cd {tmp_path}; {deaf}; ({deaf}; sleep 600) & echo $! > child; echo $$ > pid; wait; sleep 600"
        hook = script(tmp_path, body)
        harness = AgentHarness(
            tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook], timeout=1))
        )
        harness.start()
        await harness.show(event())
        await awaited(
            lambda: any("it did not finish within 1 s and was stopped" in line for line in harness.said)
        )
        for file in ("pid", "child"):
            pid = int((tmp_path / file).read_text())
            await awaited(lambda pid=pid: system.process_started(pid) is None)  # type: ignore[misc]
        await over(harness)

    play(main())


def test_a_program_is_stopped_when_its_event_vanishes(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 600")
        back = script(tmp_path, f"touch {tmp_path}/back", name="back")
        harness = AgentHarness(
            tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook], recover=[back]))
        )
        harness.start()
        await harness.show(event())
        pid = int(await line_in(tmp_path / "pid"))
        await over(harness)
        assert system.process_started(pid) is None
        assert (tmp_path / "back").exists()

    play(main())


def test_a_program_outlives_the_agent_and_the_next_one_waits_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(
            tmp_path, f"echo run >> {tmp_path}/ran; while ! test -e {tmp_path}/go; do sleep 0.02; done"
        )
        harness = AgentHarness(tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook])))
        harness.start()
        await harness.show(event())
        await line_in(tmp_path / "ran")
        await harness.stop()
        harness.start()
        await harness.show(event())
        assert harness.endpoint.approved == []
        (tmp_path / "go").touch()
        await awaited(lambda: harness.endpoint.approved)
        assert (tmp_path / "ran").read_text() == "run\n"
        await over(harness)

    play(main())


def test_the_next_agent_knows_how_a_program_ended(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(
            tmp_path,
            f"while ! test -e {tmp_path}/go; do sleep 0.02; done; echo run >> {tmp_path}/ran; exit 3",
        )
        harness = AgentHarness(tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook])))
        harness.start()
        await harness.show(event())
        attempt = harness.journal.tracked_events["A"].attempt(Side.PREPARE, "drain")
        assert attempt is not None
        assert attempt.process is not None
        await harness.stop()
        (tmp_path / "go").touch()
        await awaited(lambda: system.process_started(attempt.process.pid) is None)  # type: ignore[union-attr]
        harness.start()
        await harness.show(event())
        await awaited(lambda: "drain: prepare failed: exit code 3" in harness.said)
        assert (tmp_path / "ran").read_text() == "run\n"
        await over(harness)

    play(main())


def test_a_program_with_an_unknown_end_runs_again_as_a_second_attempt(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(
            tmp_path, f'echo $FOREWARN_ATTEMPT >> {tmp_path}/ran; test "$FOREWARN_ATTEMPT" = 2 || sleep 600'
        )
        harness = AgentHarness(tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook])))
        harness.start()
        await harness.show(event())
        await line_in(tmp_path / "ran")
        attempt = harness.journal.tracked_events["A"].attempt(Side.PREPARE, "drain")
        await harness.stop()
        assert attempt is not None
        assert attempt.process is not None
        os.killpg(attempt.process.pid, signal.SIGKILL)  # like a reboot
        await awaited(lambda: system.process_started(attempt.process.pid) is None)  # type: ignore[union-attr]
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved)
        assert (tmp_path / "ran").read_text().split() == ["1", "2"]
        await over(harness)

    play(main())


def test_a_program_may_be_stopped_and_run_again_instead(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(
            tmp_path, f'echo $FOREWARN_ATTEMPT >> {tmp_path}/ran; test "$FOREWARN_ATTEMPT" = 2 || sleep 600'
        )
        declared = toml(name="drain", kind="exec", prepare=[hook], on_restart="again")
        harness = AgentHarness(tmp_path, *handlers(declared))
        harness.start()
        await harness.show(event())
        await line_in(tmp_path / "ran")
        attempt = harness.journal.tracked_events["A"].attempt(Side.PREPARE, "drain")
        await harness.stop()
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved)
        assert (tmp_path / "ran").read_text().split() == ["1", "2"]
        assert attempt is not None
        assert attempt.process is not None
        assert system.process_started(attempt.process.pid) is None
        await over(harness)

    play(main())


def test_another_process_with_the_same_pid_is_not_mistaken_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(tmp_path, f"echo run >> {tmp_path}/ran")
        harness = AgentHarness(tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook])))
        # Written before a reboot, with the pid that this process has now.
        entries = [
            {"journal": 1, "vm_id": ""},
            {
                "entry": "taken-up",
                "event": {
                    "EventId": "A",
                    "EventStatus": "Scheduled",
                    "EventType": "Reboot",
                    "Resources": ["web-0"],
                },
                "at": "2026-01-05T12:00:00+00:00",
            },
            {
                "entry": "begun",
                "event": "A",
                "side": "prepare",
                "handler": "drain",
                "attempt": 1,
                "at": "2026-01-05T12:00:00+00:00",
            },
            {
                "entry": "running",
                "event": "A",
                "side": "prepare",
                "handler": "drain",
                "pid": os.getpid(),
                "started": "another-boot:1",
            },
        ]
        (tmp_path / "agent.journal").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved)
        assert (tmp_path / "ran").read_text() == "run\n"
        assert "drain: prepare begins, attempt 2" in harness.said
        await over(harness)

    play(main())


def test_a_program_of_a_vanished_event_is_stopped_before_recovery(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 600")
        back = script(
            tmp_path, f"kill -0 $(cat {tmp_path}/pid) && touch {tmp_path}/early; exit 0", name="back"
        )
        harness = AgentHarness(
            tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook], recover=[back]))
        )
        harness.start()
        await harness.show(event())
        pid = int(await line_in(tmp_path / "pid"))
        await harness.stop()
        assert system.process_started(pid) is not None
        harness.start()
        await over(harness)
        assert system.process_started(pid) is None
        assert not (tmp_path / "early").exists()
        assert "drain: recover ready" in harness.said

    play(main())


@pytest.mark.parametrize(
    ("code", "said"), [(0, "drain: prepare ready"), (3, "drain: prepare failed: exit code 3")]
)
def test_a_program_has_a_result_without_a_result_file(tmp_path: Path, code: int, said: str) -> None:
    async def main() -> None:
        body = f"echo run >> {tmp_path}/ran; rm -r {tmp_path}/runs; exit {code}"
        hook = script(tmp_path, body)
        harness = AgentHarness(tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook], retry=1)))
        harness.start()
        await harness.show(event())
        await awaited(lambda: any("drain: prepare" in line and "begins" not in line for line in harness.said))
        assert said in harness.said
        assert (tmp_path / "ran").read_text() == "run\n"
        await over(harness)

    play(main())


def test_a_program_runs_although_its_output_cannot_be_kept(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "runs").touch()  # no folder can be created here
        hook = script(tmp_path, f"cat > {tmp_path}/told; echo hello")
        harness = AgentHarness(tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook])))
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved or harness.said[-1].startswith("not approved"))
        assert harness.endpoint.approved == ["A"]
        assert json.loads((tmp_path / "told").read_text())["EventId"] == "A"
        assert "drain: the disk cannot be written, so its output is lost" in harness.said
        await over(harness)

    play(main())


def test_an_agent_finds_the_keeper_after_an_upgrade() -> None:
    assert Path(forewarn.__file__).parent / "programs" / "keeper.py" == KEEPER


def test_a_program_runs_only_after_its_journal_entry(tmp_path: Path) -> None:
    """A keeper without an order ends by itself after the agent was killed."""
    keeper = subprocess.Popen([sys.executable, "-I", "-S", str(KEEPER)], stdin=subprocess.PIPE)
    assert keeper.stdin is not None
    order = {
        "words": ["touch", str(tmp_path / "ran")],
        "environment": {},
        "user": None,
        "input": "",
        "result": str(tmp_path / "r"),
    }
    keeper.stdin.write(json.dumps(order).encode())  # killed before the end of the line
    keeper.stdin.close()
    assert keeper.wait(PATIENCE) != 0, "the exit code must not mean success"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_program_that_other_users_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    async def main() -> None:
        hook = script(tmp_path, f"touch {tmp_path}/ran", mode=mode)
        (one,) = handlers(toml(name="drain", kind="exec", prepare=[hook]))
        assert one.does.problems() == [f"others can write {hook}: `chmod go-w {hook}`"]
        harness = AgentHarness(tmp_path, one)
        harness.start()
        await harness.show(event())
        await awaited(lambda: any("drain: prepare failed: others can write" in line for line in harness.said))
        assert not (tmp_path / "ran").exists()
        await over(harness)

    play(main())


@pytest.mark.parametrize("mode", [0o777, 0o775])
@pytest.mark.parametrize("below", [".", "a/b"])
def test_a_program_below_a_folder_that_other_users_can_write_is_refused(
    tmp_path: Path, mode: int, below: str
) -> None:
    folder = tmp_path / "open"
    (folder / below).mkdir(parents=True)
    folder.chmod(mode)
    (one,) = handlers(toml(name="drain", kind="exec", prepare=[script(folder / below, "")]))
    assert one.does.problems() == [f"others can write the folder {folder}: `chmod go-w {folder}`"]


def test_a_sticky_folder_is_allowed(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    (one,) = handlers(toml(name="drain", kind="exec", prepare=[script(folder, "")]))
    assert not one.does.problems()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("below", [".", "a"])
def test_a_program_below_a_folder_of_another_user_is_refused(tmp_path: Path, below: str) -> None:
    folder = tmp_path / "theirs"
    (folder / below).mkdir(parents=True)
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(folder, nobody, -1)
    (one,) = handlers(toml(name="drain", kind="exec", prepare=[script(folder / below, "")]))
    (problem,) = one.does.problems()
    assert problem.startswith(f"{folder} belongs to user {nobody}: ")


def test_a_program_by_name_in_a_writable_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "link").symlink_to(script(tmp_path, ""))
    (one,) = handlers(toml(name="drain", kind="exec", prepare=[str(folder / "link")]))
    assert one.does.problems() == [f"others can write the folder {folder}: `chmod go-w {folder}`"]


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    (one,) = handlers(toml(name="drain", kind="exec", prepare=["/no/such/hook"]))
    assert one.does.problems() == ["/no/such/hook does not exist"]
    assert call_handler(one) == Never("/no/such/hook does not exist")
    path = script(tmp_path, "", mode=0o644)
    (two,) = handlers(toml(name="drain", kind="exec", prepare=[path]))
    assert call_handler(two) == Never(f"{path} is not executable: `chmod +x {path}`")


@pytest.mark.parametrize(
    ("agent", "user", "said"),
    [
        (0, "nobody", None),
        (12345, "nobody", "run the agent as root, or run it as nobody and omit `user`"),
        (12345, "root", "run the agent as root"),
    ],
)
def test_only_root_can_run_programs_as_other_users(
    monkeypatch: pytest.MonkeyPatch, agent: int, user: str, said: str | None
) -> None:
    (one,) = handlers(toml(name="drain", kind="exec", prepare=["/bin/true"], user=user))
    monkeypatch.setattr(os, "geteuid", lambda: agent)
    told = [why for why in one.does.problems() if why.startswith("user: ")]
    assert told == ([f"user: only root can run programs as {user}: {said}"] if said else [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run programs as others")
def test_a_program_runs_as_another_user(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out").chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o055)

    async def main() -> None:
        hook = script(tmp_path, f"id -un > {tmp_path}/out/who; echo $HOME >> {tmp_path}/out/who")
        harness = AgentHarness(
            tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[hook], user="nobody"))
        )
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved)
        told = (tmp_path / "out" / "who").read_text().split()
        assert told == ["nobody", pwd.getpwnam("nobody").pw_dir]
        await over(harness)

    play(main())


def test_an_unknown_user_is_a_failure(tmp_path: Path) -> None:
    async def main() -> None:
        hook = script(tmp_path, "")
        (one,) = handlers(toml(name="drain", kind="exec", prepare=[hook], user="no-such-user"))
        assert one.does.problems() == ["user: user no-such-user does not exist on this machine"]
        harness = AgentHarness(tmp_path, one)
        harness.start()
        await harness.show(event())
        await awaited(
            lambda: any("drain: prepare failed" in line and "no-such-user" in line for line in harness.said)
        )
        await over(harness)

    play(main())


def test_the_hooks_of_a_folder_run_by_name_and_recover_in_reverse(tmp_path: Path) -> None:
    async def main() -> None:
        hooks = tmp_path / "hooks"
        hooks.mkdir()
        for name in ("10-drain", "20-stop"):
            script(hooks, f"echo {name} $1 >> {tmp_path}/order", name=name)
        harness = AgentHarness(tmp_path, *handlers(toml(name="hooks", kind="exec", hooks=str(hooks))))
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved)
        await over(harness)
        assert (tmp_path / "order").read_text().splitlines() == [
            "10-drain prepare",
            "20-stop prepare",
            "20-stop recover",
            "10-drain recover",
        ]

    play(main())


@pytest.mark.parametrize("id_", ["../../EVIL", "/EVIL", "WITH.A.DOT"])
def test_files_of_programs_stay_in_their_folder_whatever_the_event_id(tmp_path: Path, id_: str) -> None:
    async def main() -> None:
        folder = tmp_path / "a" / "b"
        folder.mkdir(parents=True)
        harness = AgentHarness(
            folder, *handlers(toml(name="drain", kind="exec", prepare=[script(tmp_path, "")]))
        )
        harness.start()
        await harness.show(event(id_))
        await awaited(lambda: harness.endpoint.approved)
        assert len(list((folder / "runs").iterdir())) == 2
        await over(harness)
        assert not list((folder / "runs").iterdir())

    play(main())
    assert not list(tmp_path.rglob("*EVIL*"))


def test_files_of_programs_are_removed(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(
            tmp_path, *handlers(toml(name="drain", kind="exec", prepare=[script(tmp_path, "echo hi")]))
        )
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved)
        assert list((tmp_path / "runs").iterdir())
        await over(harness)
        await settled()
        assert list((tmp_path / "runs").iterdir()) == []

    play(main())


# Requests


def webhook(**fields: Any) -> Handler:
    (made,) = handlers(toml(name="hook", kind="webhook", **fields), SECRET="hush-hush")
    return made


def test_a_webhook_sends_the_event() -> None:
    with receiving() as receiver:
        assert call_handler(webhook(url=receiver.url)) == Ready("127.0.0.1 answered 204")
        (told,) = receiver.taken
        assert (told["machine"], told["side"], told["seconds_left"]) == ("web-0", "prepare", 900)
        assert told["event"]["EventId"] == "A"


@pytest.mark.parametrize(("left", "number"), [(899.5, 899), (None, None)])
def test_numbers_are_numbers_in_the_body_of_a_webhook(left: float | None, number: int | None) -> None:
    with receiving() as receiver:
        texts = {
            "left": "${seconds_left}",
            "nth": "${attempt}",
            "takes": "${duration}",
            "text": "no. ${attempt}",
        }
        call_handler(webhook(url=receiver.url, body=texts), left=left)
        assert receiver.taken == [{"left": number, "nth": 1, "takes": -1, "text": "no. 1"}]


def test_the_placeholders_of_a_webhook_are_filled_in() -> None:
    with receiving() as receiver:
        one = webhook(
            url=receiver.url + "/${machine}?what=${resources}",
            headers={"Authorization": "Bearer ${env:SECRET}"},
            body={"text": '${type} of "${machine}"', "more": [1, "${side}"]},
            recover_body={"text": "over"},
        )
        call_handler(one)
        call_handler(one, Side.RECOVER)
        (headers, body), (_, second) = receiver.calls
        assert headers["authorization"] == "Bearer hush-hush"
        assert json.loads(body) == {"text": 'Reboot of "web-0"', "more": [1, "prepare"]}
        assert json.loads(second) == {"text": "over"}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (503, Again("127.0.0.1 answered 503")),
        (429, Again("127.0.0.1 answered 429")),
        (400, Never("127.0.0.1 answered 400")),
    ],
)
def test_a_temporary_error_is_retried_and_a_refusal_is_not(status: int, outcome: Outcome) -> None:
    with receiving() as receiver:
        receiver.answer = lambda count: status
        assert call_handler(webhook(url=receiver.url)) == outcome


def test_an_unreachable_server_is_retried_and_its_url_is_not_logged() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = call_handler(webhook(url=f"http://127.0.0.1:{port}/secret-path"))
    assert said == Again("127.0.0.1 cannot be reached (ConnectError)")


def test_a_webhook_may_have_one_side() -> None:
    one = webhook(url="http://127.0.0.1:9/", sides=["prepare"])
    assert call_handler(one, Side.RECOVER) == Ready()
    assert one.does.describe(Side.RECOVER) == ""


def test_a_chat_gets_a_message() -> None:
    with receiving() as receiver:
        (chat,) = handlers(toml(name="chat", kind="notify", url=receiver.url, text="${type} soon"))
        assert call_handler(chat) == Ready("127.0.0.1 answered 204")
        assert receiver.taken == [{"text": "Reboot soon"}]


# Mail


def test_an_administrator_gets_mail() -> None:
    with mail_server() as server:
        (mail,) = handlers(toml(name="admin", kind="notify", to="admin@example.com", smtp=server.place))
        assert call_handler(mail) == Ready("mail to admin@example.com")
        assert call_handler(mail, Side.RECOVER) == Ready("mail to admin@example.com")
        first, second = server.mails
        assert "Subject: web-0: Reboot is Scheduled" in first
        assert "at the earliest at 2026-01-05T12:15:00Z" in first.replace("=\r\n", "")
        assert "Subject: web-0: Reboot is over" in second


def test_a_refused_mail_is_a_failure_and_an_unreachable_server_is_retried() -> None:
    with mail_server() as server:
        server.refuses = True
        (mail,) = handlers(toml(name="admin", kind="notify", to="admin@example.com", smtp=server.place))
        assert call_handler(mail) == Never("mail server 127.0.0.1 does not deliver to admin@example.com")
    assert call_handler(mail) == Again(
        "mail server 127.0.0.1 cannot take the mail now (ConnectionRefusedError)"
    )


# Load balancers


class Balancer:
    """A fake of HAProxy's runtime API, after its documentation."""

    def __init__(self, path: Path) -> None:
        self.commands: list[str] = []
        self.sessions = [2, 1, 0]
        self.states = {"web-0": 0, "web-1": 0}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                command = connection.recv(1000).decode().strip()
                self.commands.append(command)
                connection.sendall(self._answer(command).encode())

    def _answer(self, command: str) -> str:
        match command.split():
            case ["show", "stat"]:
                left = self.sessions.pop(0) if len(self.sessions) > 1 else self.sessions[0]
                own = f"web,web-0,0,{left},UP,\n"
                return f"# pxname,svname,qcur,scur,status,\nweb,FRONTEND,,9,OPEN,\n{own}web,web-1,0,7,UP,\n\n"
            case ["show", "servers", "state"]:
                rows = "".join(f"3 web {name} {state}\n" for name, state in self.states.items())
                return f"1\n# be_id be_name srv_name srv_admin_state\n{rows}\n"
            case ["set", "server", server, "state", state] if server.removeprefix("web/") in self.states:
                self.states[server.removeprefix("web/")] = {"ready": 0, "maint": 1, "drain": 8}[state]
                return "\n"
            case _:
                return "No such server.\n\n"


@contextmanager
def balancer(folder: Path) -> Iterator[tuple[Balancer, str]]:
    # Not in the test's folder, because the path of a socket must be short.
    path = Path(f"/tmp/forewarn-{os.getpid()}.sock")
    path.unlink(missing_ok=True)
    made = Balancer(path)
    try:
        yield made, str(path)
    finally:
        made.close()
        path.unlink()


def drain(path: str | list[str], *servers: str, **more: Any) -> Handler:
    (made,) = handlers(toml(name="drain", kind="haproxy", socket=path, servers=list(servers), **more))
    return made


def test_a_server_is_drained_until_its_sessions_have_ended(tmp_path: Path) -> None:
    with balancer(tmp_path) as (lb, path):
        owed: list[str] = []
        assert call_handler(drain(path, "web/${machine}"), owe=owed.append) == Ready("no session is left")
        assert lb.commands[:2] == ["show servers state", "set server web/web-0 state drain"]
        assert lb.commands[2:] == ["show stat"] * 3
        assert owed == [f"web/web-0 at {path}"]


def test_draining_ends_when_no_time_is_left(tmp_path: Path) -> None:
    with balancer(tmp_path) as (lb, path):
        lb.sessions = [4]
        assert call_handler(drain(path, "web/${machine}"), left=3.0) == Ready(
            "4 sessions have not ended, and there is no time left"
        )


def test_a_server_is_made_ready_again(tmp_path: Path) -> None:
    with balancer(tmp_path) as (lb, path):
        lb.states["web-0"] = 8
        owed = [f"web/web-0 at {path}"]
        assert call_handler(drain(path, "web/${machine}"), Side.RECOVER, owed=owed) == Ready()
        assert lb.states["web-0"] == 0


@pytest.mark.parametrize("state", [1, 5, 8, 9])
def test_a_server_that_a_person_has_drained_stays_drained(tmp_path: Path, state: int) -> None:
    with balancer(tmp_path) as (lb, path):
        lb.states["web-0"], lb.sessions = state, [0]
        one, owed = drain(path, "web/web-0", "web/web-1"), list[str]()
        call_handler(one, owe=owed.append, left=0.0)
        assert lb.states == {"web-0": state, "web-1": 8}
        call_handler(one, Side.RECOVER, owed=owed)
        assert lb.states == {"web-0": state, "web-1": 0}


def test_a_server_in_maintenance_since_the_event_stays_in_maintenance(tmp_path: Path) -> None:
    with balancer(tmp_path) as (lb, path):
        lb.states["web-0"] = 1
        assert call_handler(drain(path, "web/web-0"), Side.RECOVER, owed=[f"web/web-0 at {path}"]) == Ready()
        assert lb.states["web-0"] == 1


def test_a_missing_server_is_a_failure(tmp_path: Path) -> None:
    with balancer(tmp_path) as (_, path):
        assert call_handler(drain(path, "web/db")) == Never(f"HAProxy at {path}: No such server.")


def test_an_unreachable_balancer_is_retried(tmp_path: Path) -> None:
    one = drain("/no/such.sock", "web/web-0")
    assert call_handler(one) == Again("HAProxy at /no/such.sock does not answer: No such file or directory")
    assert one.does.problems()


@pytest.mark.parametrize(("side", "before", "after"), [(Side.PREPARE, 0, 8), (Side.RECOVER, 8, 0)])
def test_an_unreachable_balancer_does_not_stop_the_others(
    tmp_path: Path, side: Side, before: int, after: int
) -> None:
    with balancer(tmp_path) as (lb, path):
        lb.states["web-0"] = before
        both = drain(["/no/such.sock", path], "web/web-0")
        owed = [f"web/web-0 at {each}" for each in ("/no/such.sock", path)]
        away = Again("HAProxy at /no/such.sock does not answer: No such file or directory")
        assert call_handler(both, side, owed=owed) == away
        assert lb.states["web-0"] == after


def test_a_missing_server_does_not_stop_the_others(tmp_path: Path) -> None:
    with balancer(tmp_path) as (lb, path):
        several = drain(["/no/such.sock", path], "web/db", "web/web-0")
        assert call_handler(several) == Never(f"HAProxy at {path}: No such server.")
        assert lb.commands[1:] == ["set server web/db state drain", "set server web/web-0 state drain"]


def test_a_check_finds_missing_servers(tmp_path: Path) -> None:
    with balancer(tmp_path) as (_, path):
        assert not drain(path, "web/${machine}", "web/web-0").does.problems()
        assert drain(path, "web/web-9", "api/${machine}").does.problems() == [
            f"HAProxy at {path} has no server web/web-9; it has web/web-0, web/web-1",
            f"HAProxy at {path} has no server api/${{machine}}; it has web/web-0, web/web-1",
        ]


def test_a_check_finds_a_balancer_that_refuses_connections() -> None:
    assert drain("127.0.0.1:1", "web/web-0").does.problems() == [
        "HAProxy at 127.0.0.1:1 does not answer: Connection refused"
    ]


def test_a_check_finds_a_balancer_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.agent.handlers.haproxy.CHECK_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        assert drain(place, "web/web-0").does.problems() == [f"HAProxy at {place} does not answer: timed out"]


# Processes


def test_the_process_of_a_pid_file_is_stopped_and_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    start = script(tmp_path, f"sleep 600 & echo $! > {pid_file}", name="start")
    subprocess.run([start], check=True)

    async def main() -> None:
        declared = toml(name="app", kind="process", pid_file=str(pid_file), start=[start])
        first = int(pid_file.read_text())
        harness = AgentHarness(tmp_path, *handlers(declared))
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved)
        assert system.process_started(first) is None
        await over(harness)
        second = int(pid_file.read_text())
        assert second != first
        assert system.process_started(second) is not None
        os.kill(second, signal.SIGKILL)

    play(main())


@contextmanager
def sleeping() -> Iterator[int]:
    """Run an unrelated process."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def pid_file_of(folder: Path, pid: int, *, written: timedelta) -> Path:
    """Write a pid file with an age."""
    path = folder / "pid"
    path.write_text(f"{pid}\n")
    then = path.stat().st_mtime - written.total_seconds()
    os.utime(path, (then, then))
    return path


def test_a_process_that_started_after_its_pid_file_was_written_is_not_signalled(tmp_path: Path) -> None:
    with sleeping() as pid:
        path = pid_file_of(tmp_path, pid, written=timedelta(hours=1))
        (one,) = handlers(toml(name="app", kind="process", pid_file=str(path)))
        owed: list[str] = []
        match call_handler(one, owe=owed.append):
            case Never(why):
                assert why.startswith(
                    f"no process was signalled: process {pid} of {path} started 1 h after the file"
                )
            case other:
                pytest.fail(f"{other}")
        assert system.process_started(pid) is not None
        assert owed == []


def test_a_check_finds_a_stale_pid_file(tmp_path: Path) -> None:
    with sleeping() as pid:
        path = pid_file_of(tmp_path, pid, written=timedelta(hours=1))
        (remark,) = parse(toml(name="app", kind="process", pid_file=str(path)), environment={}).remarks
        assert "so it is another process: no process would be signalled" in remark


def test_a_program_is_started_if_another_process_has_its_pid(tmp_path: Path) -> None:
    start = script(tmp_path, "true", name="start")
    with sleeping() as pid:
        path = pid_file_of(tmp_path, pid, written=timedelta(hours=1))
        (one,) = handlers(toml(name="app", kind="process", pid_file=str(path), start=[start]))
        with pytest.raises(AssertionError, match=f"it runs .*{start}"):
            call_handler(one, Side.RECOVER, owed=[str(path)])


def test_a_process_that_runs_another_program_is_not_signalled(tmp_path: Path) -> None:
    with sleeping() as pid:
        path = pid_file_of(tmp_path, pid, written=timedelta())
        (one,) = handlers(toml(name="app", kind="process", pid_file=str(path), executable="/usr/sbin/nginx"))
        sleep = Path(os.readlink(f"/proc/{pid}/exe"))
        refusal = f"no process was signalled: process {pid} of {path} runs {sleep}, not /usr/sbin/nginx"
        assert call_handler(one) == Never(refusal)
        assert system.process_started(pid) is not None


def test_a_process_that_runs_the_executable_is_stopped(tmp_path: Path) -> None:
    with sleeping() as pid:
        path = pid_file_of(tmp_path, pid, written=timedelta())
        program = shutil.which("sleep")
        (one,) = handlers(toml(name="app", kind="process", pid_file=str(path), executable=program))
        assert call_handler(one) == Ready(f"process {pid} has ended")


@pytest.mark.parametrize("killed", [False, True])
def test_a_process_that_did_not_run_before_the_event_is_not_started_after_it(
    tmp_path: Path, killed: bool
) -> None:
    start = script(tmp_path, f"touch {tmp_path}/started", name="start")
    declared = toml(name="app", kind="process", pid_file=str(tmp_path / "none"), start=[start])

    async def main() -> None:
        harness = AgentHarness(tmp_path, *handlers(declared))
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved)
        if killed:
            await harness.stop()
            harness.start()
        await over(harness)
        assert "app: prepare ready: it is not running" in harness.said
        assert "app: recover ready: it was not running before the event and stays stopped" in harness.said

    play(main())
    assert not (tmp_path / "started").exists()


SYSTEMCTL = """
case "$1" in
  show) echo "LoadState=$(cat {folder}/load)"; echo "ActiveState=$(head -n 1 {folder}/state)"
    test $(wc -l < {folder}/state) = 1 || sed -i 1d {folder}/state;;
  stop) echo stop >> {folder}/ran; echo inactive > {folder}/state;;
  start) echo start >> {folder}/ran; echo active > {folder}/state;;
esac
"""


def put_systemd(folder: Path, monkeypatch: pytest.MonkeyPatch, *states: str, load: str = "loaded") -> None:
    """Install a fake systemctl, because a container has no systemd."""
    script(folder, SYSTEMCTL.replace("{folder}", str(folder)), name="systemctl")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    (folder / "state").write_text("".join(f"{state}\n" for state in states))
    (folder / "load").write_text(load)


@pytest.mark.parametrize(
    ("states", "ran", "after"),
    [
        (["active"], ["stop", "start"], "active"),
        (["activating"], ["stop", "start"], "active"),
        (["inactive"], [], "inactive"),
        (["failed"], [], "failed"),
        (["deactivating", "deactivating", "inactive"], [], "inactive"),  # a person is stopping it
        (["deactivating", "activating"], ["stop", "start"], "active"),  # a person is restarting it
    ],
)
def test_a_unit_is_stopped_and_started_unless_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states: list[str], ran: list[str], after: str
) -> None:
    put_systemd(tmp_path, monkeypatch, *states)

    async def main() -> None:
        harness = AgentHarness(tmp_path, *handlers(toml(name="app", kind="process", unit="nginx.service")))
        harness.start()
        await harness.show(event())
        await awaited(lambda: harness.endpoint.approved)
        await over(harness)

    play(main())
    log = tmp_path / "ran"
    assert (log.read_text().split() if log.exists() else []) == ran
    assert (tmp_path / "state").read_text().split()[-1] == after


def test_a_process_that_the_handler_has_stopped_is_started(tmp_path: Path) -> None:
    start = script(tmp_path, "true", name="start")
    (one,) = handlers(toml(name="app", kind="process", pid_file=str(tmp_path / "none"), start=[start]))
    with pytest.raises(AssertionError, match=f"it runs .*{start}"):
        call_handler(one, Side.RECOVER, owed=[str(tmp_path / "none")])


@pytest.mark.parametrize(
    ("load", "fault"),
    [
        (
            "not-found",
            "systemd has no unit ngnix.service: the name is misspelled, or the unit is not installed",
        ),
        (
            "bad-setting",
            "systemd cannot load the unit ngnix.service: `systemctl status ngnix.service` shows the reason",
        ),
        (
            "error",
            "systemd cannot load the unit ngnix.service: `systemctl status ngnix.service` shows the reason",
        ),
        ("masked", None),
        ("loaded", None),
    ],
)
def test_a_unit_that_systemd_cannot_run_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: str, fault: str | None
) -> None:
    put_systemd(tmp_path, monkeypatch, "inactive", load=load)
    (one,) = handlers(toml(name="app", kind="process", unit="ngnix.service"))
    assert call_handler(one) == (Never(fault) if fault else Ready("it is not running"))
    assert list(one.does.problems()) == ([fault] if fault else [])


def test_a_check_finds_a_unit_without_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "echo 'System has not been booted with systemd.' >&2; exit 1", name="systemctl")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (one,) = handlers(toml(name="app", kind="process", unit="nginx.service"))
    assert list(one.does.problems()) == [
        "systemd does not answer (System has not been booted with systemd.): unit nginx.service cannot be "
        "stopped; use pid-file instead"
    ]


def test_a_running_unit_without_a_file_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_systemd(tmp_path, monkeypatch, "active", load="not-found")
    (one,) = handlers(toml(name="app", kind="process", unit="nginx.service"))
    with pytest.raises(AssertionError, match=r"it runs .*stop"):
        call_handler(one)


# Plug-ins


def test_a_plug_in_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "siren-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: siren\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[forewarn.handlers]\nsiren = siren:Siren\n")
    (tmp_path / "siren.py").write_text(
        "from forewarn.agent.handling import Ready\n"
        "class Siren:\n"
        "    def __init__(self, options):\n"
        "        self.volume = options['volume']\n"
        "    async def prepare(self, task):\n"
        "        return Ready(f'{self.volume} dB')\n"
        "    recover = prepare\n"
        "    def describe(self, side):\n"
        "        return 'wails'\n"
        "    def problems(self):\n"
        "        return ()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (siren,) = handlers(toml(name="loud", kind="siren", volume=120))
    assert call_handler(siren) == Ready("120 dB")
    with pytest.raises(Exception, match=r"line 1: .*the plug-in siren:Siren refuses the config: 'volume'"):
        handlers(toml(name="loud", kind="siren"))


def test_no_process_is_left() -> None:
    """The keepers of all tests have ended."""

    def keepers() -> list[str]:
        found = subprocess.run(
            ["ps", "-eo", "ppid=,args="], capture_output=True, text=True, check=True
        ).stdout
        mine = [line for line in found.splitlines() if str(KEEPER) in line and f"{os.getpid()} " in line]
        return [line for line in mine if "defunct" not in line]

    until(lambda: not keepers(), what="the last keeper to be gone")
