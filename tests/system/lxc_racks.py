"""Racks of LXC containers: directories in a mount namespace that has the cgroups containers need."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from shutil import copy

from tests.helpers.programs.process import PATIENCE, ending

# Private mounts are invisible outside, and disappear with the last process inside.
MOUNTS = """
set -e
mount -t tmpfs none /sys/fs/cgroup
if mkdir /sys/fs/cgroup/freezer && mount -t cgroup -o freezer none /sys/fs/cgroup/freezer 2>/dev/null; then
    mkdir /sys/fs/cgroup/devices && mount -t cgroup -o devices none /sys/fs/cgroup/devices || true
else
    mount -t cgroup2 none /sys/fs/cgroup
fi
echo ready
exec sleep infinity
"""

# Records each boot, and writes the computer's uptime ten times a second while it runs.
INIT = """#!/bin/busybox sh
trap 'exit 0' TERM PWR
read up rest < /proc/uptime
echo "$up" >> /boots
while :; do
    read up rest < /proc/uptime
    echo "$up" >> /ticks
    /bin/busybox sleep 0.1
done
"""

CONFIG = """
lxc.uts.name = {name}
lxc.rootfs.path = dir:{folder}/rootfs
lxc.init.cmd = /init
lxc.net.0.type = empty
lxc.autodev = 0
lxc.mount.auto = proc
lxc.apparmor.profile = unconfined
"""


class Racks:
    """Directories of containers, by name."""

    def __init__(self, folder: Path, *, inside: int) -> None:
        self.folder = folder
        self.inside = ("nsenter", "--target", f"{inside}", "--mount")

    def place(self, rack: str) -> Path:
        return self.folder / rack

    def add(self, rack: str, *names: str) -> None:
        """Create containers, and start them."""
        for name in names:
            folder = self.place(rack) / name
            root = folder / "rootfs"
            for each in ("bin", "dev", "proc"):
                (root / each).mkdir(parents=True)
            copy("/bin/busybox", root / "bin")
            # Containers need it: without it, output redirected to /dev/null would create a regular file.
            os.mknod(root / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            (root / "init").write_text(INIT)
            (root / "init").chmod(0o755)
            (folder / "config").write_text(CONFIG.format(name=name, folder=folder))
            self._lxc("start", rack, name)

    def state(self, rack: str, name: str) -> str:
        """Return the state that LXC reports for a container, or ABSENT if it does not exist."""
        if not (self.place(rack) / name / "config").exists():
            return "ABSENT"
        return self._lxc("info", rack, name, "-sH").strip()

    def boots(self, rack: str, name: str) -> int:
        """Return how often a container has started."""
        return len(self._lines(rack, name, "boots"))

    def pauses(self, rack: str, name: str, *, longer_than: float) -> list[float]:
        """Return the lengths of the gaps in a container's ticks that exceed a number of seconds."""
        ticks = [float(line) for line in self._lines(rack, name, "ticks")]
        gaps = (later - earlier for earlier, later in pairwise(ticks))
        return [gap for gap in gaps if gap > longer_than]

    def has_devices(self, rack: str, name: str) -> bool:
        """Return whether a container's /dev/null is a device."""
        return stat.S_ISCHR((self.place(rack) / name / "rootfs" / "dev" / "null").stat().st_mode)

    def kill(self, rack: str, name: str) -> None:
        """Kill a container."""
        self._lxc("stop", rack, name, "--kill")

    def remove(self) -> None:
        """Kill all containers."""
        for config in self.folder.glob("*/*/config"):
            self._lxc("stop", config.parent.parent.name, config.parent.name, "--kill", check=False)

    def _lines(self, rack: str, name: str, what: str) -> list[str]:
        file = self.place(rack) / name / "rootfs" / what
        # The last line may be incomplete.
        return file.read_text().split("\n")[:-1] if file.exists() else []

    def _lxc(self, verb: str, rack: str, name: str, *more: str, check: bool = True) -> str:
        done = subprocess.run(
            [*self.inside, f"lxc-{verb}", "-P", str(self.place(rack)), "-n", name, *more],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert not check or done.returncode == 0, f"lxc-{verb} {name}: {done.stderr}"
        return done.stdout


@contextmanager
def lxc_racks(folder: Path, *names: str) -> Iterator[Racks]:
    """Yield empty racks, and remove them afterwards."""
    for name in names:
        (folder / name).mkdir(parents=True)
    holder = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNTS],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert holder.stdout is not None
    with holder.stdout, ending(holder):
        said = holder.stdout.readline()
        assert said == "ready\n", said + (holder.stdout.read() if holder.poll() is not None else "")
        racks = Racks(folder, inside=holder.pid)
        before = os.stat("/dev/null")
        try:
            yield racks
        finally:
            racks.remove()
        # Containers share the computer's devices, and LXC changes the owner of the file it gets for output.
        assert (before.st_mode, before.st_uid) == (os.stat("/dev/null").st_mode, os.stat("/dev/null").st_uid)
