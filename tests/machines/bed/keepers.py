"""Keepers: a process for each place that does nothing but hold its namespaces open.

The keeper is the first process of its process namespace: when it is killed, the kernel kills everything that
runs there, and network and mounts are gone with the last of them. So nothing has to be looked for by name.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.programs.process import PATIENCE, until

# The kernel reaps the children of who ignores their end: a dead qemu must not look as if it were still there.
# The number is read before /proc is mounted anew: it is the one that the outside knows.
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
    """A process known beyond doubt: numbers are given anew, but not with the same start."""

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
    """Return when a process started, in ticks since the computer did; None if it has ended."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def this_process() -> Process:
    return Process(os.getpid(), start_of(os.getpid()) or 0)


def keep(then: str = "", *, bound: bool) -> Process:
    """Make namespaces, run a script in them, and return their keeper; a bound one ends with this process."""
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
        parent.returncode = 0  # It goes on: leaving this block must not wait for it.
    number = int(said)
    return Process(number, start_of(number) or 0)


# Kept, so that nothing warns that they still run.
_parents: list[subprocess.Popen[str]] = []


def inside(keeper: Process, *, everything: bool) -> list[str]:
    """Return what a command must begin with to run there: wholly, or in its network alone."""
    spaces = ["--net", "--mount", "--uts", "--pid"] if everything else ["--net"]
    return ["nsenter", "--target", str(keeper.number), *spaces, "--"]


def run(line: Sequence[str], *, within: float = PATIENCE, check: bool = True) -> str:
    """Run a command, and return what it printed; fail with what it said on stderr."""
    done = subprocess.run(list(line), capture_output=True, text=True, timeout=within, check=False)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(line)}\n{done.stdout}{done.stderr}")
    return done.stdout


def missing_programs() -> list[str]:
    """Return the programs that a bed needs and this computer lacks."""
    needed = ("libvirtd", "virsh", "qemu-system-x86_64", "qemu-img", "ip", "unshare", "nsenter", "setpriv")
    return [name for name in needed if shutil.which(name) is None]
