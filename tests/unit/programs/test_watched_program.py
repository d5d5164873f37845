"""Programs of drivers: environment, end, output, and background jobs."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.programs.program import Exited, Invocation, NotRun, Outcome, TimedOut, Unwatched
from forewarn.programs.watched_program import LONGEST_LINE, MOST_OUTPUT, WatchedProgram, clean_environment
from forewarn.programs.watched_program import run as run_within
from tests.helpers.programs.no_thread import no_thread
from tests.helpers.programs.process_ends import await_end
from tests.helpers.service.racing import at_once

LONG, AT_ONCE = timedelta(minutes=1), timedelta(milliseconds=1)


@pytest.fixture(autouse=True)
def _looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.programs.watched_program.LOOK_EVERY", 0.05)


def script(text: str, *words: str, given: bytes = b"") -> Invocation:
    return Invocation(words=("/bin/sh", "-c", text, *words), environment=clean_environment({}), input=given)


def run(invocation: Invocation, *, timeout: timedelta = LONG) -> Outcome:
    return run_within(invocation, timeout=timeout)


def started(invocation: Invocation) -> WatchedProgram:
    return WatchedProgram(invocation, timeout=LONG)


def exited(invocation: Invocation) -> Exited:
    outcome = run(invocation)
    assert isinstance(outcome, Exited)
    return outcome


def refuse(*_: object) -> object:
    raise OSError(5, "Input/output error")


def await_file(path: Path) -> None:
    until = time.monotonic() + 60
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < until
        threading.Event().wait(0.01)


def test_the_outcome_has_the_exit_code_the_output_and_the_last_line_of_stderr() -> None:
    outcome = exited(script("cat; echo first >&2; echo last >&2; echo >&2; exit 3", given=b"given"))
    assert outcome == Exited(code=3, output=b"given", last_line="last")


def test_a_signal_is_a_negative_exit_code() -> None:
    assert exited(script("kill -9 $$")).code == -9


@pytest.mark.parametrize("words", [("/no/such/program",), ("/etc/hostname",)])
def test_a_program_that_cannot_be_started_reports_why(words: Sequence[str]) -> None:
    outcome = run(Invocation(words=words, environment={}))
    assert isinstance(outcome, NotRun)
    assert words[0] in outcome.why


def test_a_program_inherits_only_a_few_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWARN_TOKEN", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    own = Invocation(words=("/usr/bin/env",), environment=clean_environment({"FOREWARN_HOST": "host-1"}))
    shown = exited(own).output.decode().split()
    assert "FOREWARN_HOST=host-1" in shown
    assert "LANG=C.UTF-8" in shown
    assert not [each for each in shown if each.startswith("FOREWARN_TOKEN")]


def test_a_program_is_ended_with_its_process_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = 'trap "" TERM; sleep 600 & echo $$ $! > "$0"; while :; do wait; done'
    # It ignores SIGTERM.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("forewarn.programs.watched_program.GRACE_SECONDS", 0.2)
        program = started(script(text, str(pids)))
        await_file(pids)
        assert program.end() == TimedOut()
    for pid in map(int, pids.read_text().split()):
        await_end(pid)


def test_background_jobs_in_the_group_end_with_the_program(tmp_path: Path) -> None:
    left = tmp_path / "left"
    exited(script('sleep 600 & echo $! > "$0"', str(left)))
    await_end(int(left.read_text()))


def test_a_program_is_ended_after_its_timeout() -> None:
    assert run(script("exec sleep 600"), timeout=AT_ONCE) == TimedOut()


def test_a_caller_can_end_a_program() -> None:
    program = started(script("exec sleep 600"))
    assert program.wait(0) is None
    assert program.end() == TimedOut()


def test_the_beginning_of_stdout_and_the_last_line_of_stderr_are_kept() -> None:
    outcome = exited(script("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; echo '\nlast' >&2"))
    assert len(outcome.output) == MOST_OUTPUT
    assert outcome.last_line == "last"


def test_the_last_line_of_stderr_has_a_bounded_length() -> None:
    said = exited(script(r"printf 'a\033b' >&2; head -c 3000 /dev/zero | tr '\0' x >&2")).last_line
    assert said.isprintable()
    assert len(said) == LONGEST_LINE


def test_output_is_truncated_while_a_program_runs(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    text = 'head -c 200000 /dev/zero; head -c 200000 /dev/zero >&2; echo >&2; read x < "$0"; echo end >&2'
    program = started(script(text, str(go_on)))
    go_on.write_text("on\n")
    outcome = program.wait(60)
    assert isinstance(outcome, Exited)
    assert outcome.last_line == "end"


SERVER = """
from datetime import timedelta
from forewarn.programs.program import Invocation
from forewarn.programs.watched_program import run
run(Invocation(words=("/bin/sh", "-c", {text!r}), environment={{}}), timeout=timedelta(minutes=10))
"""
# After its server has died, prints far more than a pipe holds to both pipes.
FLOOD = (
    "cd {folder}; echo $$ > pid; read word < go-on; "
    "head -c 5000000 /dev/zero && head -c 5000000 /dev/zero >&2 && echo printed > ended; read word < go-on"
)


def test_a_program_can_print_after_its_server_has_died(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go-on")
    text = SERVER.format(text=FLOOD.format(folder=tmp_path))
    server = subprocess.Popen([sys.executable, "-c", text])
    try:
        await_file(tmp_path / "pid")
    finally:
        server.kill()
        server.wait()
    (tmp_path / "go-on").write_text("on\n")
    await_file(tmp_path / "ended")
    assert (tmp_path / "ended").read_text() == "printed\n"
    program = int((tmp_path / "pid").read_text())
    (tmp_path / "go-on").write_text("on\n")
    await_end(program)


def test_a_program_can_reopen_its_output() -> None:
    outcome = exited(script("echo one > /dev/stdout; echo two >> /dev/stdout; echo three > /dev/stderr"))
    assert outcome == Exited(code=0, output=b"one\ntwo\n", last_line="three")


def test_a_background_job_does_not_delay_the_end_of_its_program(tmp_path: Path) -> None:
    pid, job = tmp_path / "pid", tmp_path / "job"
    job.write_text('echo $$ > "$0.pid"; mv "$0.pid" "$1"; exec yes')
    text = 'setsid sh "$0" "$1" & while [ ! -e "$1" ]; do :; done'
    try:
        assert exited(script(text, str(job), str(pid))).code == 0
    finally:
        await_file(pid)
        os.kill(int(pid.read_text()), 9)
    await_end(int(pid.read_text()))


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), AttributeError("pidfd_open")])
def test_a_program_is_watched_to_its_end_without_free_descriptors(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(_pid: int) -> int:
        raise error

    monkeypatch.setattr(os, "pidfd_open", refused)
    count = tmp_path / "count"
    assert exited(script('echo begun >> "$0"; sleep 0.2; exit 7', str(count))).code == 7
    assert count.read_text() == "begun\n"


def test_a_program_that_cannot_be_watched_does_not_count_as_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "waitid", refuse)
    ended = tmp_path / "ended"
    outcome = run(script('echo yes > "$0"', str(ended)))
    assert outcome == Unwatched("the result of /bin/sh is unknown: [Errno 5] Input/output error")
    assert ended.read_text() == "yes\n"


def test_a_program_that_cannot_be_watched_is_ended_after_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "waitid", refuse)
    assert isinstance(run(script("exec sleep 600"), timeout=AT_ONCE), Unwatched)


def test_a_program_that_cannot_be_watched_can_be_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "waitid", refuse)
    monkeypatch.setattr("forewarn.programs.watched_program.GRACE_SECONDS", 0.2)
    pid = tmp_path / "pid"
    program = started(script('trap "" TERM; echo $$ > "$0"; while :; do sleep 0.1; done', str(pid)))
    await_file(pid)
    program.end()
    assert isinstance(program.wait(60), Unwatched)
    await_end(int(pid.read_text()))


@pytest.mark.parametrize(
    "error",
    [
        BlockingIOError(11, "Resource temporarily unavailable"),
        subprocess.SubprocessError("Exception occurred in preexec_fn."),
        subprocess.CalledProcessError(2, "drain"),
        ValueError("embedded null byte"),
    ],
)
@pytest.mark.parametrize("starts", [0, 1])
def test_a_failure_to_fork_is_reported_as_not_run(
    starts: int, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drain cannot be forked, then the program cannot."""
    real, left = subprocess.Popen, [starts]

    def refused(*args: Any, **named: Any) -> "subprocess.Popen[bytes]":
        if not left.pop(0):
            raise error
        return real(*args, **named)

    left += [0]
    monkeypatch.setattr(subprocess, "Popen", refused)
    outcome = started(script("exit 0")).wait(60)
    assert isinstance(outcome, NotRun)
    assert outcome.why.startswith("/bin/sh cannot be run: ")


def test_a_program_with_nul_in_an_argument_is_not_run() -> None:
    outcome = started(script("exit 0", "a\0b")).wait(60)
    assert outcome == NotRun("/bin/sh cannot be run: embedded null byte")


def test_without_a_thread_to_watch_it_a_program_is_not_run(tmp_path: Path) -> None:
    count = tmp_path / "count"
    with no_thread():
        program = started(script('echo run > "$0"', str(count)))
    assert program.wait(0) == NotRun("/bin/sh cannot be run: can't start new thread")
    assert program.end() == program.wait(0)
    assert not count.exists()


def test_a_failure_of_the_watching_thread_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise SystemExit("broken")

    monkeypatch.setattr("forewarn.programs.watched_program.subprocess.Popen", broken)
    program = started(script("exit 0"))
    assert program.wait(60) == Unwatched("the result of /bin/sh is unknown: broken")


# Adopts orphaned processes like process 1, and counts its children without the background job.
FIRST_PROCESS = """
import ctypes, os, sys, time
from datetime import timedelta
from forewarn.programs.program import Invocation
from forewarn.programs.watched_program import clean_environment, run

def go(*words):
    return run(Invocation(words=words, environment=clean_environment({})), timeout=timedelta(minutes=1))

def is_child(pid):
    try:
        name, rest = open(f"/proc/{pid}/stat").read().split("(", 1)[1].rsplit(")", 1)
    except OSError:
        return False
    return name != "tee" and rest.split()[1] == str(os.getpid())

def children():
    return len([pid for pid in os.listdir("/proc") if pid.isdigit() and is_child(pid)])

assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
for _ in range(3):
    go("/bin/true")
    go("/no/such/program")
print(children())
job = 'setsid sh -c "echo > $0.begun; exec tee < $0" & until [ -e $0.begun ]; do :; done'
go("/bin/sh", "-c", job, sys.argv[1])
print(children() > 0)
open(sys.argv[1], "w").close()
until = time.monotonic() + 30
while children() and time.monotonic() < until:
    go("/bin/true")
print(children())
"""


def test_process_1_reaps_drains(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    words = [sys.executable, "-c", FIRST_PROCESS, str(fifo)]
    shown = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout
    assert shown.split() == ["0", "True", "0"]


def test_a_program_without_a_descriptor_for_its_pipes_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe", refused)
    assert run(script("exit 0")) == NotRun("/bin/sh cannot be run: Too many open files")


def test_concurrent_calls_of_end_all_get_the_outcome() -> None:
    program = started(script("exec sleep 600"))
    assert at_once([program.end] * 4) == [TimedOut()] * 4
