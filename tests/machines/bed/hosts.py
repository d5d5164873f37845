"""A hypervisor host: its own namespaces with a libvirtd that tests kill, stop and start."""

import signal
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.helpers.programs.process import PATIENCE
from tests.machines.bed import keepers
from tests.machines.bed.keepers import Process

# The bridge of each namespace, with the links of guests and to the other namespaces.
BRIDGE = "guests"
# The folder of a host's local disks.
IMAGES = Path("/var/lib/libvirt/images")
# Folders that each libvirtd needs for itself.
_PRIVATE = ("/run", "/etc/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt")
_LIBVIRTD = """\
listen_tls = 0
listen_tcp = 1
tcp_port = "16509"
auth_tcp = "none"
auth_unix_ro = "none"
auth_unix_rw = "none"
host_uuid = "{uuid}"
log_outputs = "2:file:/var/log/libvirt/libvirtd.log"
"""
_QEMU = """\
user = "root"
group = "root"
security_driver = "none"
stdio_handler = "file"
dynamic_ownership = 0
namespaces = []
cgroup_controllers = []
"""
_CUT = "add table inet cut; " + "; ".join(
    f"add chain inet cut {way} {{ type filter hook {way} priority 0; policy drop; }}"
    for way in ("input", "output")
)


class Hypervisor:
    """One host of a bed."""

    def __init__(self, *, name: str, address: str, folder: Path, keeper: Process) -> None:
        """Use the existing namespaces of a host."""
        self.name = name
        self.address = address
        self.folder = folder
        self.keeper = keeper

    @property
    def uri(self) -> str:
        """The URI for the service and the other host, within the bed's networks."""
        return f"qemu+tcp://{self.address}/system"

    @property
    def socket_uri(self) -> str:
        """The URI from outside the bed."""
        return f"qemu:///system?socket={self.folder / 'run/libvirt/libvirt-sock'}"

    @property
    def images(self) -> Path:
        """The folder of local disks, as seen from outside."""
        return self.folder / "var/lib/libvirt/images"

    @property
    def log(self) -> str:
        """The log of its libvirtd."""
        return (self.folder / "var/log/libvirt/libvirtd.log").read_text(errors="replace")

    def run(self, *line: str, within: float = PATIENCE, check: bool = True) -> str:
        """Run a command on the host; return its output."""
        return keepers.run([*keepers.inside(self.keeper, everything=True), *line], within=within, check=check)

    def virsh(self, *words: str, check: bool = True) -> str:
        """Run virsh on its libvirtd."""
        return self.run("virsh", "--quiet", *words, check=check).strip()

    def start(self) -> None:
        """Start its libvirtd; return when it answers."""
        self.run("libvirtd", "--daemon", "--listen", "--pid-file", "/run/libvirtd.pid")

    def kill(self) -> None:
        """Kill its libvirtd; guests run on."""
        self.signal(signal.SIGKILL)
        self.run("sh", "-c", f"while kill -0 {self._number} 2> /dev/null; do sleep 0.05; done")
        (self.folder / "run/libvirtd.pid").unlink(missing_ok=True)

    def signal(self, which: signal.Signals) -> None:
        """Send its libvirtd a signal, such as SIGSTOP or SIGCONT."""
        self.run("kill", f"-{which.value}", self._number)

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Drop every packet to and from the host itself; packets of guests pass over its bridge."""
        self.run("nft", _CUT)
        try:
            yield
        finally:
            self.run("nft", "delete table inet cut")

    @contextmanager
    def pool(self, *, size: str | None = None) -> Iterator[None]:
        """Define a pool of local disks on a file system of a given size."""
        if size is not None:
            self.run("mount", "-t", "tmpfs", "-o", f"size={size}", "images", str(IMAGES))
        self.virsh("pool-create-as", "images", "dir", "--target", str(IMAGES))
        try:
            yield
        finally:
            self.virsh("pool-destroy", "images", check=False)
            if size is not None:
                self.run("umount", "--lazy", str(IMAGES))

    def mend(self) -> None:
        """Repair its libvirtd after a test."""
        if self.run("sh", "-c", "kill -CONT $(cat /run/libvirtd.pid) 2> /dev/null || echo gone").strip():
            (self.folder / "run/libvirtd.pid").unlink(missing_ok=True)
            self.start()

    def state(self, machine: str) -> str | None:
        """Return the state of a machine; None if its libvirtd does not have it."""
        return self.virsh("domstate", machine, check=False) or None

    @property
    def _number(self) -> str:
        return (self.folder / "run/libvirtd.pid").read_text().strip()


def build(*, name: str, known: Mapping[str, str], folder: Path, bound: bool) -> Hypervisor:
    """Create a host's namespaces and settings; `start` starts its libvirtd."""
    for path in _PRIVATE:
        _inner(folder, path).mkdir(parents=True)
        Path(path).mkdir(parents=True, exist_ok=True)
    (folder / "var/lib/libvirt/images").mkdir()
    _inner(folder, "/run/lock").mkdir()
    conf = _inner(folder, "/etc/libvirt")
    conf.joinpath("libvirtd.conf").write_text(
        _LIBVIRTD.format(uuid=uuid.uuid5(uuid.NAMESPACE_URL, str(folder)))
    )
    conf.joinpath("qemu.conf").write_text(_QEMU)
    # libvirtd requires this user although it is configured to use another; not every package creates it.
    for path, line in (("/etc/passwd", "106::/var/lib/libvirt:/bin/false"), ("/etc/group", "")):
        _inner(folder, path).write_text(f"{Path(path).read_text()}libvirt-qemu:x:64055:{line}\n")
    # Hosts migrate to each other by name.
    _inner(folder, "/etc/hosts").write_text("".join(f"{there} {who}\n" for who, there in known.items()))
    files = ("/etc/passwd", "/etc/group", "/etc/hosts")
    mounts = [f"mount --bind {_inner(folder, path)} {path}" for path in (*_PRIVATE, *files)]
    keeper = keepers.keep("\n".join([f"hostname {name}", *mounts]), bound=bound)
    return Hypervisor(name=name, address=known[name], folder=folder, keeper=keeper)


def _inner(folder: Path, path: str) -> Path:
    return folder / path.removeprefix("/")
