"""The image that guests boot: Debian's cloud kernel and a small initial file system.

Nothing is installed: Debian's packages are unpacked beside the programs of the virtual environment.
"""

import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.machines.bed import keepers

# `make` unpacks the packages of unpacked.txt here, and the image is stored here.
_VENV = Path(sys.executable).parents[1]
_SCRIPTS = Path(__file__).parent / "guest"
# The drivers of a guest's devices; their dependencies differ between kernels.
_MODULES = ("virtio_pci", "virtio_net", "virtio_blk", "virtio_console", "evdev", "button")
_NEEDS = re.compile(rb"depends=([\w,-]*)\0")


@dataclass(frozen=True, slots=True)
class Image:
    """The kernel and the initial file system of a domain."""

    kernel: Path
    initramfs: Path


def made() -> Image:
    """Return the image; create it again if one of its parts has changed."""
    packages = _packages()
    kernel = next((packages["linux"] / "boot").glob("vmlinuz-*"))
    folder = _VENV / "guest-image"
    folder.mkdir(exist_ok=True)
    image = Image(kernel=kernel, initramfs=folder / "initramfs")
    sources = [*_SCRIPTS.iterdir(), Path(__file__), kernel]
    if not image.initramfs.exists() or image.initramfs.stat().st_mtime < max(_time(path) for path in sources):
        _write(image.initramfs, packages)
    return image


def _time(path: Path) -> float:
    return max(path.stat().st_mtime, path.stat().st_ctime)


def _packages() -> dict[str, Path]:
    kernels = sorted(_VENV.glob("linux-image-*-cloud-amd64/boot"))
    found = {
        "busybox": _VENV / "busybox-static",
        "agent": _VENV / "qemu-guest-agent",
        "linux": kernels[-1].parent if kernels else _VENV / "linux-image",
    }
    if lacking := [str(path) for path in found.values() if not path.exists()]:
        raise AssertionError(f"not unpacked: {', '.join(lacking)}; run `make machines` as root")
    return found


def _write(initramfs: Path, packages: dict[str, Path]) -> None:
    archive = Archive()
    for folder in ("bin", "sbin", "dev", "proc", "sys", "tmp", "run", "modules", "etc", "lib", "lib64"):
        archive.folder(folder)
    archive.device("dev/console", 5, 1)
    archive.file("bin/busybox", packages["busybox"].joinpath("bin/busybox").read_bytes(), run=True)
    for applet in keepers.run([str(packages["busybox"] / "bin/busybox"), "--list"]).split():
        if applet not in ("busybox", "shutdown"):
            archive.link(f"bin/{applet}", "busybox")
    for script in _SCRIPTS.iterdir():
        where = {"init": "init", "shutdown": "sbin/shutdown"}.get(script.name, f"bin/{script.name}")
        archive.file(where, script.read_bytes(), run=True)
    agent = packages["agent"] / "usr/sbin/qemu-ga"
    archive.file("sbin/qemu-ga", agent.read_bytes(), run=True)
    needed = keepers.run(["ldd", str(agent)])
    assert "not found" not in needed, f"the guest agent lacks libraries:\n{needed}"
    for library in re.findall(r"(/\S+) \(0x", needed):
        folder = "lib64" if library.startswith("/lib64/") else "lib"
        archive.file(f"{folder}/{Path(library).name}", Path(library).read_bytes(), run=True)
    modules = _modules(packages["linux"] / "lib/modules")
    for name, content in modules.items():
        archive.file(f"modules/{name}.ko", content)
    archive.file("modules/order", "\n".join(modules).encode())
    # Renamed into place, because another test run may create the same image.
    fresh = initramfs.with_name(f"initramfs-{keepers.this_process().number}")
    fresh.write_bytes(archive.bytes())
    fresh.rename(initramfs)


def _modules(folder: Path) -> dict[str, bytes]:
    """Return the kernel modules for guests, sorted by dependency."""
    files = {path.stem.replace("-", "_"): path for path in folder.rglob("*.ko")}
    ordered: dict[str, bytes] = {}

    def add(name: str) -> None:
        content = files[name].read_bytes()
        found = _NEEDS.search(content)
        for needed in (found[1].decode() if found else "").replace("-", "_").split(","):
            if needed in files and needed not in ordered:
                add(needed)
        ordered[name] = content

    for name in _MODULES:
        if name in files:  # otherwise it is built into the kernel
            add(name)
    return ordered


class Archive:
    """A cpio archive in the kernel's format (newc)."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._count = 0

    def folder(self, name: str) -> None:
        self._add(name, stat.S_IFDIR | 0o755)

    def file(self, name: str, content: bytes, *, run: bool = False) -> None:
        self._add(name, stat.S_IFREG | (0o755 if run else 0o644), content)

    def link(self, name: str, to: str) -> None:
        self._add(name, stat.S_IFLNK | 0o777, to.encode())

    def device(self, name: str, major: int, minor: int) -> None:
        self._add(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def bytes(self) -> bytes:
        """Return the archive."""
        self._add("TRAILER!!!", 0)
        return b"".join(self._parts)

    def _add(self, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._count += 1
        encoded = name.encode() + b"\0"
        fields = (self._count, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        self._parts += [_padded(header + encoded), _padded(content)]


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)
