"""The steps that a driver is given, kept in a directory: what a program needs to be a driver of forewarn.

A step is a file, named by its order and machine. `begin` writes it and leaves the work to a worker, a process
of its own that goes on when the call is over or the server is killed. `check` reads it, and starts a worker
anew if that was killed: so every work must be able to run twice. `cancel` has a worker stop where it can, and
keeps what has not begun from beginning. What a later attempt is known of is refused to an older one.
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

SHORT = 1.5  # what takes less is answered for at once, in seconds
KEPT = 30 * 86400  # files of steps are kept for a month

Answer = dict[str, Any]


class Failed(Exception):
    """The work cannot be done; the text says why."""


class CannotTell(Exception):
    """A hypervisor does not answer: nothing is known of the work, and it is tried again."""


class CalledOff(Exception):
    """The work was called off before it was too late."""


class Step:
    """A step, as forewarn gives it (`task`), and what is known of it here."""

    def __init__(self, folder: Path, task: Mapping[str, Any]) -> None:
        subject = task["machine"]["id"] if task["machine"] else f"host.{task['host']['name']}"
        self.task, self.attempt, self.folder = task, task["attempt"], folder
        self._file = folder / f"{task['order']}.{subject}.json"

    @property
    def known(self) -> dict[str, Any]:
        """What was kept of the latest attempt."""
        try:
            return dict(json.loads(self._file.read_text()))
        except FileNotFoundError:
            return {"attempt": 0}

    def keep(self, **more: Any) -> None:
        """Keep more of this attempt, unless a later one is known."""
        with self._locked("lock"):
            known = self.known
            if known["attempt"] <= self.attempt:
                before = known if known["attempt"] == self.attempt else {}
                new = self._file.with_suffix(".new")
                new.write_text(json.dumps({**before, **more, "attempt": self.attempt}))
                new.replace(self._file)

    def once(self, name: str, value: Callable[[], Any]) -> Any:
        """Return what was kept under a name; the first time, find it out and keep it."""
        if name not in self.known:
            self.keep(**{name: value()})
        return self.known[name]

    def go_on(self) -> None:
        """Stop here if the step was called off; to be asked where nothing has been changed yet."""
        if self.known.get("state") == "cancelling":
            raise CalledOff

    def away(self) -> float:
        """Return the seconds since the machine was first taken away (`once("since", time.time)`)."""
        return round(max(time.time() - float(self.once("since", time.time)), 0), 3)

    # What forewarn asks

    def begin(self) -> Answer:
        """Begin, or say how far it is that was begun before."""
        if self.known["attempt"] < self.attempt:
            self.keep(state="running")
        return self.check()

    def check(self) -> Answer:
        """Say how far it is; not begun if no such attempt is known here."""
        known = self.known
        if known["attempt"] < self.attempt:
            return {"state": "not-begun"}
        if known["attempt"] > self.attempt:
            return {"state": "failed", "why": f"attempt {known['attempt']} of it is known here already"}
        if self._under_way():
            self._work_elsewhere()
            self._wait(SHORT)
        known = self.known
        match known["state"]:
            case "done":
                return {key: known[key] for key in ("state", "host", "impact") if key in known}
            case "failed":
                return {"state": "failed", "why": known["why"]}
            case "cancelled":
                return {"state": "failed", "why": "it was called off"}
            case _ if known.get("trouble"):
                return {"state": "unknown", "why": known["trouble"], "look_in": 10}
            case _:
                far = {"mark": self._file.name, "progress": known.get("progress")}
                return {"state": "running", "look_in": 1, **far}

    def cancel(self) -> Answer:
        """Call it off where that is still possible, and never begin it."""
        if self.known["attempt"] < self.attempt:
            self.keep(state="cancelled")
        elif self._under_way():
            self.keep(state="cancelling")
            self._wait(SHORT)
        over = self.known["state"] in ("cancelled", "failed") or self.known["attempt"] > self.attempt
        return {"state": "cancelled" if over else "too-late"}

    # The worker

    def work(self, works: Mapping[str, Callable[["Step"], Answer | None]]) -> None:
        """Do the work, unless somebody else is at it or it is over."""
        with self._locked("work", wait=False) as mine:
            if not mine or self.known["attempt"] != self.attempt or not self._under_way():
                return
            asked = self.task["task"] or self.task["work"]
            self.keep(trouble="")
            try:
                if asked not in works:
                    raise Failed(f"this driver knows no {asked}")
                self.keep(**{**(works[asked](self) or {}), "state": "done"})
            except CalledOff:
                self.keep(state="cancelled")
            except CannotTell as error:
                self.keep(trouble=f"{error}")
            except (Failed, OSError) as error:
                self.keep(state="failed", why=f"{error}")

    def _work_elsewhere(self) -> None:
        """Start a worker that outlives this call; one that is there already makes it end at once."""
        with tempfile.TemporaryFile() as given, (self.folder / "log").open("a") as log:
            given.write(json.dumps(self.task).encode())
            given.seek(0)
            words = [*sys.argv[:-1], "work"]
            subprocess.Popen(words, stdin=given, stdout=log, stderr=log, start_new_session=True)

    def _under_way(self) -> bool:
        return self.known["state"] in ("running", "cancelling")

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._under_way() and not self.known.get("trouble") and time.monotonic() < until:
            time.sleep(0.05)

    @contextmanager
    def _locked(self, what: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold a lock of the step, which its holder's death gives back; yield whether it is held."""
        with self._file.with_suffix(f".{what}").open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True


def run(*words: str, check: bool = True) -> str:
    """Run a command, and return what it prints; Failed with its last line if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit {done.returncode}"]
        raise Failed(f"{' '.join(words[:3])}: {said[-1]}")
    return done.stdout.strip()


def main(works: Mapping[str, Callable[[Step], Answer | None]]) -> None:
    """Answer a call: PROGRAM DIRECTORY … begin|check|cancel, with the task on stdin."""
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
