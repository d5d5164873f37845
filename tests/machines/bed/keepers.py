"""Keepers: processes that hold namespaces open.

A keeper is the first process of its process namespace. When it is killed, the kernel kills all processes
there, and the network and the mounts disappear with them. So nothing has to be found by name.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.programs.process import PATIENCE, until

# With SIGCHLD ignored, the kernel reaps children, so that a dead qemu is no zombie.
# Read the pid before /proc is mounted again, so that it is valid outside.
_KEEP = """
set -e
read -r number rest < /proc/self/stat
mount -t proc proc /proc
mount -t sysfs sysfs /sys
ip link set lo up
{then}
echo $number
exec env --ignore-signal=CHLD sleep infinity > /dev/null 2>&1 < /dev/null
"""


@dataclass(frozen=True, slots=True)
class Process:
    """A process with its start time, because pids are reused."""

    number: int
    start: int

    @property
    def alive(self) -> bool:
        return start_of(self.number) == self.start

    def kill(self) -> None:
        if self.alive:
            os.kill(self.number, signal.SIGKILL)
            until(lambda: not self.alive, what=f"the end of process {self.number}")


def start_of(number: int) -> int | None:
    """Return the start time of a process in ticks since boot; None if it has ended."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def this_process() -> Process:
    return Process(os.getpid(), start_of(os.getpid()) or 0)


def keep(then: str = "", *, bound: bool) -> Process:
    """Create namespaces, run a script in them, and return the keeper; a bound one ends with this process."""
    line = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child"]
    if bound:
        line = ["setpriv", "--pdeathsig", "KILL", *line]
    with subprocess.Popen(
        [*line, "sh", "-c", _KEEP.format(then=then)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        said = parent.stdout.readline().strip()
        if not said:
            raise AssertionError(f"no namespaces: {parent.stderr.read()}")
        _parents.append(parent)
        parent.returncode = 0  # It goes on after this block.
    number = int(said)
    return Process(number, start_of(number) or 0)


# Referenced, so that Python does not warn that they still run.
_parents: list[subprocess.Popen[str]] = []


def inside(keeper: Process, *, everything: bool) -> list[str]:
    """Return the prefix of a command that runs there, or only in its network."""
    spaces = ["--net", "--mount", "--uts", "--pid"] if everything else ["--net"]
    return ["nsenter", "--target", str(keeper.number), *spaces, "--"]


def run(line: Sequence[str], *, within: float = PATIENCE, check: bool = True) -> str:
    """Run a command; return its output, or fail with its stderr."""
    done = subprocess.run(list(line), capture_output=True, text=True, timeout=within, check=False)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(line)}\n{done.stdout}{done.stderr}")
    return done.stdout


def missing_programs() -> list[str]:
    """Return the missing programs of this computer."""
    needed = ("libvirtd", "virsh", "qemu-system-x86_64", "qemu-img", "ip", "unshare", "nsenter", "setpriv")
    return [name for name in needed if shutil.which(name) is None]
