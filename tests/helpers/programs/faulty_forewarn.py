"""`forewarn` with background tasks that fail as often as a test wants, run in its own process.

The folder FAULTS has a file for each task that must fail, with the number of failures. A file `sound` in it
makes running tasks count as sound.
"""

import functools
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from forewarn import supervision
from forewarn.platform.systemd import Systemd
from forewarn.server import background, serve
from forewarn.server.threads import inventories, operator_server
from forewarn.server.threads.host_probes import HostProbes
from forewarn.server.threads.inventories import MachineWatch
from forewarn.server.threads.pusher import Pusher, WebhookSender
from forewarn.server.threads.reads import Reads
from forewarn.server.threads.worker import Worker
from forewarn.store.opening.lock import FileLock

OFTEN = 0.02
_counting = threading.Lock()


def fault(name: str) -> Path:
    return Path(os.environ["FAULTS"]) / name


class Pace:
    """Restarts tasks immediately. The test decides when they count as sound."""

    first = longest = 0.01

    @property
    def sound_after(self) -> float:
        return 0.0 if fault("sound").exists() else float("inf")


def fail_if_wanted(task: str) -> None:
    with _counting:  # several threads of one task may fail at once
        try:
            left = int(fault(task).read_text())
        except (OSError, ValueError):
            return
        if left > 0:
            fault(task).write_text(str(left - 1))
    if left > 0:
        raise (
            SystemExit(f"injected into {task}") if task in THREADS else RuntimeError(f"injected into {task}")
        )


def failing(owner: Any, name: str, task: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(real)
    def faulty(*args: Any, **named: Any) -> Any:
        fail_if_wanted(task)
        return real(*args, **named)

    setattr(owner, name, faulty)


THREADS = ("worker", "read", "operator-port")
FAILING = (
    (Worker, "_sleep", "worker"),
    (Reads, "_take", "read"),
    (uvicorn.Server, "on_tick", "operator-port"),
    (Pusher, "_reload", "webhooks"),
    (WebhookSender, "_send_page", "webhook"),
    (FileLock, "keep", "lock"),
    (background, "run_out", "descriptors"),
    (serve, "reload_settings", "reload"),
    (Systemd, "alive", "watchdog"),
    (HostProbes, "ask", "reaching"),
    (MachineWatch, "look", "hypervisors"),
)


def main() -> None:
    for each in FAILING:
        failing(*each)
    supervision.RestartPace = Pace  # type: ignore[assignment,misc]
    background.LOOK_AT_LOCK_EVERY = background.LOOK_AT_DESCRIPTORS_EVERY = OFTEN
    background.LOOK_EVERY = inventories.LOOK_EVERY = OFTEN
    failing(operator_server._Server, "startup", "operator-start")
    HostProbes.wanted = True  # type: ignore[assignment,method-assign]
    sys.argv = sys.argv[1:]
    from forewarn.__main__ import main as forewarn

    forewarn()


if __name__ == "__main__":
    main()
