"""A bed: the server's namespace, two hypervisor hosts, and the links between them."""

import ctypes
import itertools
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from tests.helpers.programs.process import PATIENCE, until
from tests.machines.bed import domains, hosts, image, keepers
from tests.machines.bed.console import Console
from tests.machines.bed.domains import Disk, Guest
from tests.machines.bed.hosts import BRIDGE, IMAGES, Hypervisor
from tests.machines.bed.keepers import Process

METADATA = "169.254.169.254"
SERVER = "10.77.0.1"
HOSTS = {"kvm01": "10.77.0.2", "kvm02": "10.77.0.3", "kvm03": "10.77.0.4"}
# Enough for most tests.
TWO = tuple(HOSTS)[:2]
# One folder for each bed on this computer.
BEDS = Path(tempfile.gettempdir()) / "forewarn-beds"

_FIRST_NBD_PORT = 10809
_built = itertools.count()
_CLONE_NEWNET = 0x40000000


class Bed:
    """Hosts, guests and the server's namespace; created by `built` or `python -m tests.machines.bed up`."""

    def __init__(self, *, name: str, server: Process, hypervisors: Mapping[str, Hypervisor]) -> None:
        """Use an existing bed."""
        self.name = name
        self.folder = BEDS / name
        self.server = server
        self.hosts = dict(hypervisors)
        self._ports = itertools.count()

    @property
    def inside(self) -> list[str]:
        """The prefix of a command that runs in the server's network."""
        return keepers.inside(self.server, everything=False)

    def run(self, *line: str, within: float = PATIENCE) -> str:
        """Run a command in the server's network, and return what it printed."""
        return keepers.run([*self.inside, *line], within=within)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Run this thread, and threads that it starts, in the server's network."""
        with (
            _network("/proc/thread-self/ns/net") as own,
            _network(f"/proc/{self.server.number}/ns/net") as there,
        ):
            _enter(there)
            try:
                yield
            finally:
                _enter(own)

    def guest(
        self,
        name: str,
        *,
        number: int,
        on: str = "kvm01",
        flags: Sequence[str] = (),
        disks: Sequence[Disk] = (),
        metadata: str = "",
        start: bool = True,
    ) -> Guest:
        """Define and start a machine on a host; `number` (10 to 250) determines its address and MAC."""
        booted = image.made()
        made = Guest(
            name=name,
            number=number,
            console=Console(self.folder / "consoles" / f"{name}.log"),
            kernel=booted.kernel,
            initramfs=booted.initramfs,
            flags=flags,
            disks=disks,
            metadata=metadata,
            vm_id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.folder}/{name}")),
        )
        definition = self.folder / "domains" / f"{name}.xml"
        definition.write_text(made.xml)
        self.hosts[on].virsh("define", str(definition))
        if start:
            self.hosts[on].virsh("start", name)
        return made

    def shared_disk(self, name: str, *, size: str = "16M") -> Disk:
        """Create a file that both hosts share; libvirt cannot know that it is shared."""
        path = self.folder / "disks" / f"{name}.qcow2"
        keepers.run(["qemu-img", "create", "-q", "-f", "qcow2", str(path), size])
        return domains.file_disk(path)

    def network_disk(self, name: str, *, size: str = "16M") -> Disk:
        """Create a network disk, which the server's namespace serves to both hosts."""
        path = self.folder / "disks" / f"{name}.raw"
        keepers.run(["qemu-img", "create", "-q", "-f", "raw", str(path), size])
        port = _FIRST_NBD_PORT + next(self._ports)
        served = f"qemu-nbd --fork --persistent --shared 0 --format raw --bind {SERVER} --port {port} {path}"
        keepers.run([*keepers.inside(self.server, everything=True), *served.split()])
        return domains.network_disk(path, address=SERVER, port=port)

    def own_disk(self, name: str, *, on: str, size: str = "16M", written: str = "0") -> Disk:
        """Create a disk on one host only."""
        path = str(IMAGES / f"{name}.qcow2")
        self.hosts[on].run("qemu-img", "create", "-q", "-f", "qcow2", path, size)
        self.hosts[on].run("qemu-io", "-c", f"write -q -P 119 1M {written}", path)
        return domains.file_disk(Path(path))

    def where(self, machine: str) -> dict[str, str]:
        """Return the hosts that have a machine, with its states."""
        states = {name: host.state(machine) for name, host in self.hosts.items()}
        return {name: state for name, state in states.items() if state is not None}

    def remove_guests(self) -> None:
        """Remove every machine and pool from every host."""
        for host in self.hosts.values():
            host.mend()
            for machine in host.virsh("list", "--all", "--name").split():
                host.virsh("destroy", machine, check=False)
                host.virsh("undefine", machine, "--managed-save", check=False)
            for pool in host.virsh("pool-list", "--all", "--name").split():
                host.virsh("pool-destroy", pool, check=False)
                host.virsh("pool-undefine", pool, check=False)
        parts = [self.folder / part for part in ("consoles", "domains", "disks")]
        for folder in (*parts, *(host.images for host in self.hosts.values())):
            for file in folder.iterdir():
                file.unlink()

    def remove(self) -> None:
        """Stop all processes of the bed, and remove its folder."""
        for keeper in (*(host.keeper for host in self.hosts.values()), self.server):
            keeper.kill()
        _remove_folder(self.folder)


@contextmanager
def built(name: str | None = None, *, with_hosts: Sequence[str] = TWO) -> Iterator[Bed]:
    """Build a bed for a test and remove it in any case, also when this process is killed."""
    bed = build(name or f"test-{os.getpid()}-{next(_built)}", with_hosts=with_hosts, bound=True)
    try:
        yield bed
    finally:
        bed.remove()


def build(name: str, *, bound: bool, with_hosts: Sequence[str] = TWO) -> Bed:
    """Build a bed; a bound one ends with this process, others exist until `down`."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
        raise AssertionError(f"bed {name!r}: expected lower-case letters, digits and hyphens")
    if missing := keepers.missing_programs():
        raise AssertionError(f"{', '.join(missing)}: not found; run `make machines` as root")
    remove_stale()
    folder = BEDS / name
    if folder.exists():
        raise AssertionError(f"bed {name} stands already: python -m tests.machines.bed down {name}")
    _claim(folder)
    kept: dict[str, Process] = {}
    try:
        return _build(folder, kept, with_hosts=with_hosts, bound=bound)
    except BaseException:
        for keeper in kept.values():
            keeper.kill()
        _remove_folder(folder)
        raise


def _build(folder: Path, kept: dict[str, Process], *, with_hosts: Sequence[str], bound: bool) -> Bed:
    for part in ("consoles", "domains", "disks"):
        (folder / part).mkdir()
    kept["server"] = keepers.keep(_server_network(), bound=bound)
    hypervisors = {}
    for host in with_hosts:
        made = hosts.build(name=host, known=HOSTS, folder=folder / host, bound=bound)
        kept[host] = made.keeper
        hypervisors[host] = made
        _connect(kept["server"], made)
    _note(folder, kept)
    for made in hypervisors.values():
        made.start()
    return Bed(name=folder.name, server=kept["server"], hypervisors=hypervisors)


def standing(name: str) -> Bed:
    """Return a bed of another process."""
    noted = _noted(BEDS / name)
    if noted is None or not all(process.alive for process in noted.values()):
        raise AssertionError(f"bed {name} does not stand: python -m tests.machines.bed up {name}")
    hypervisors = {
        host: Hypervisor(name=host, address=address, folder=BEDS / name / host, keeper=noted[host])
        for host, address in HOSTS.items()
        if host in noted
    }
    return Bed(name=name, server=noted["server"], hypervisors=hypervisors)


def remove_stale() -> None:
    """Remove the remains of beds whose builders were killed."""
    for folder in BEDS.iterdir() if BEDS.exists() else ():
        noted = _noted(folder)
        if noted is not None and not any(process.alive for process in noted.values()):
            _remove_folder(folder)


def remove_by_name(name: str) -> None:
    """Stop the remains of a bed by the recorded process ids."""
    for process in (_noted(BEDS / name) or {}).values():
        process.kill()
    _remove_folder(BEDS / name)


def names() -> list[str]:
    """Return the names of all beds."""
    return (
        sorted(folder.name for folder in BEDS.iterdir() if not folder.name.startswith("."))
        if BEDS.exists()
        else []
    )


def _claim(folder: Path) -> None:
    """Create a bed's folder with its builder's pid, so that it does not count as stale."""
    BEDS.mkdir(exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".", dir=BEDS))
    fresh.joinpath("keepers.json").write_text(json.dumps({"builder": asdict(keepers.this_process())}))
    fresh.chmod(0o755)
    fresh.rename(folder)


def _note(folder: Path, kept: Mapping[str, Process]) -> None:
    fresh = folder / "keepers.fresh"
    fresh.write_text(json.dumps({who: asdict(process) for who, process in kept.items()}))
    fresh.rename(folder / "keepers.json")


def _noted(folder: Path) -> dict[str, Process] | None:
    try:
        noted = json.loads((folder / "keepers.json").read_text())
    except (OSError, ValueError):
        return None
    return {who: Process(**process) for who, process in noted.items()}


def _remove_folder(folder: Path) -> None:
    # A process that was just killed may still write there.
    until(lambda: shutil.rmtree(folder, ignore_errors=True) or not folder.exists(), what=f"an empty {folder}")


def _server_network() -> str:
    return f"""
        ip link add name {BRIDGE} type bridge
        ip addr add {METADATA}/32 dev {BRIDGE}
        ip addr add {SERVER}/24 dev {BRIDGE}
        ip link set {BRIDGE} up
    """


def _connect(server: Process, host: Hypervisor) -> None:
    host.run(
        "sh", "-ec", f"ip link add name {BRIDGE} type bridge; ip addr add {host.address}/24 dev {BRIDGE}"
    )
    host.run("ip", "link", "set", BRIDGE, "up")
    keepers.run(
        [
            *keepers.inside(server, everything=False),
            *f"ip link add to-{host.name} type veth peer name uplink netns {host.keeper.number}".split(),
        ]
    )
    keepers.run(
        [*keepers.inside(server, everything=False), *f"ip link set to-{host.name} master {BRIDGE} up".split()]
    )
    host.run(*f"ip link set uplink master {BRIDGE} up".split())


@contextmanager
def _network(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _enter(network: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(network, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
