"""The driver contract of forewarn for a program that drives a hypervisor: begin, check and cancel steps.

Each step has a file in a directory, named by its order and machine:

- `begin` writes the file and starts a worker process, which outlives the call and the server.
- `check` reads the file, and restarts a worker that was killed. So every work must tolerate a second run.
- `cancel` stops the worker where possible, and prevents a step that has not begun.

After a later attempt of a step, calls for an older attempt are refused.
"""

import fcntl
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SHORT = 1.5  # seconds that a call waits for short work to end
KEPT = 30 * 86400  # seconds until the files of a step are deleted

Answer = dict[str, Any]


class Failed(Exception):
    """The work cannot be done."""


class CannotTell(Exception):
    """The hypervisor does not answer, so the state of the work is unknown. The driver tries again."""


class StepCancelled(Exception):
    """The step was cancelled in time."""


class Step:
    """A step: the task from forewarn, and the saved progress."""

    def __init__(self, folder: Path, task: Mapping[str, Any]) -> None:
        subject = task["machine"]["id"] if task["machine"] else f"host.{task['host']['name']}"
        self.task, self.attempt, self.folder = task, task["attempt"], folder
        self._file = folder / f"{task['order']}.{subject}.json"

    @property
    def saved(self) -> dict[str, Any]:
        """The saved progress of the latest attempt."""
        try:
            return dict(json.loads(self._file.read_text()))
        except FileNotFoundError:
            return {"attempt": 0}

    def save(self, **more: Any) -> None:
        """Save progress of this attempt, unless a later attempt has begun."""
        with self._locked("lock"):
            saved = self.saved
            if saved["attempt"] <= self.attempt:
                before = saved if saved["attempt"] == self.attempt else {}
                new = self._file.with_suffix(".new")
                new.write_text(json.dumps({**before, **more, "attempt": self.attempt}))
                new.replace(self._file)

    def once(self, name: str, value: Callable[[], Any]) -> Any:
        """Return the saved value of a name. The first call computes and saves it."""
        if name not in self.saved:
            self.save(**{name: value()})
        return self.saved[name]

    def raise_if_cancelled(self) -> None:
        """Raise StepCancelled if the step was cancelled. Call this only before the work changes anything."""
        if self.saved.get("state") == "cancelling":
            raise StepCancelled

    def downtime(self) -> float:
        """Return the seconds since the machine went down, saved with `once("since", time.time)`."""
        return round(max(time.time() - float(self.once("since", time.time)), 0), 3)

    # Calls from forewarn

    def begin(self) -> Answer:
        """Begin this attempt, unless it has begun before; return its state."""
        if self.saved["attempt"] < self.attempt:
            self.save(state="running")
        return self.check()

    def check(self) -> Answer:
        """Return the state of this attempt."""
        saved = self.saved
        if saved["attempt"] < self.attempt:
            return {"state": "not-begun"}
        if saved["attempt"] > self.attempt:
            return {"state": "failed", "why": f"attempt {saved['attempt']} of this step has begun already"}
        if self._is_running():
            self._start_worker()
            self._wait(SHORT)
        saved = self.saved
        match saved["state"]:
            case "done":
                return {key: saved[key] for key in ("state", "host", "impact") if key in saved}
            case "failed":
                return {"state": "failed", "why": saved["why"]}
            case "cancelled":
                return {"state": "failed", "why": "the step was cancelled"}
            case _ if saved.get("trouble"):
                return {"state": "unknown", "why": saved["trouble"], "look_in": 10}
            case _:
                progress = saved.get("progress")
                return {"state": "running", "look_in": 1, "mark": self._file.name, "progress": progress}

    def cancel(self) -> Answer:
        """Cancel this attempt where possible. An attempt that has not begun never begins."""
        if self.saved["attempt"] < self.attempt:
            self.save(state="cancelled")
        elif self._is_running():
            self.save(state="cancelling")
            self._wait(SHORT)
        ended = self.saved["state"] in ("cancelled", "failed") or self.saved["attempt"] > self.attempt
        return {"state": "cancelled" if ended else "too-late"}

    # The worker

    def work(self, works: Mapping[str, Callable[["Step"], Answer | None]]) -> None:
        """Do the work, unless another worker does it or it has ended."""
        with self._locked("work", wait=False) as is_mine:
            if not is_mine or self.saved["attempt"] != self.attempt or not self._is_running():
                return
            kind = self.task["task"] or self.task["work"]
            self.save(trouble="")
            try:
                if kind not in works:
                    raise Failed(f"this driver does not support {kind}")
                self.save(**{**(works[kind](self) or {}), "state": "done"})
            except StepCancelled:
                self.save(state="cancelled")
            except CannotTell as error:
                self.save(trouble=f"{error}")
            except (Failed, OSError) as error:
                self.save(state="failed", why=f"{error}")

    def _start_worker(self) -> None:
        """Start a worker that outlives this call. It ends at once if another worker holds the lock."""
        with tempfile.TemporaryFile() as given, (self.folder / "log").open("a") as log:
            given.write(json.dumps(self.task).encode())
            given.seek(0)
            words = [*sys.argv[:-1], "work"]
            subprocess.Popen(words, stdin=given, stdout=log, stderr=log, start_new_session=True)

    def _is_running(self) -> bool:
        return self.saved["state"] in ("running", "cancelling")

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._is_running() and not self.saved.get("trouble") and time.monotonic() < until:
            time.sleep(0.05)

    @contextmanager
    def _locked(self, what: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold a lock of the step; yield whether this process holds it. The system frees it when the holder ends."""
        with self._file.with_suffix(f".{what}").open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True


def run(*words: str, check: bool = True) -> str:
    """Run a command, and return its output. Failed with its last line if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit {done.returncode}"]
        raise Failed(f"{' '.join(words[:3])}: {lines[-1]}")
    return done.stdout.strip()


def main(works: Mapping[str, Callable[[Step], Answer | None]]) -> None:
    """Answer a call of `PROGRAM DIRECTORY … begin|check|cancel`, with the task on stdin."""
    folder, call = Path(sys.argv[1]), sys.argv[-1]
    folder.mkdir(parents=True, exist_ok=True)
    step = Step(folder, json.load(sys.stdin))
    if call == "work":
        step.work(works)
        return
    for old in folder.glob("*.*"):
        if time.time() - old.stat().st_mtime > KEPT:
            old.unlink(missing_ok=True)
    print(json.dumps({"begin": step.begin, "check": step.check, "cancel": step.cancel}[call]()))
