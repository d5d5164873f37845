"""The libvirt of one host, as the driver asks it: domains and volumes, and two kinds of trouble."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os.path import basename, dirname
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from forewarn.core.basic_types import HostName
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.library import Declined, Gone, asking, is_alive


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """What a volume is made from."""

    path: str
    capacity: int  # in bytes
    format: str = "raw"
    backing: str | None = None  # the path of the file that it adds to
    backing_format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Where volumes are kept, as far as it tells whether two hosts see the same."""

    type: str
    source: str  # as XML; the same for all hosts that mount the same


class Hypervisor:
    """A connection to the libvirt of a host."""

    def __init__(self, library: Any, connection: Any, *, host: HostName) -> None:
        self.library = library
        self.host = host
        self.connection = connection

    def asking(self) -> AbstractContextManager[None]:
        """Turn what libvirt raises into NoAnswer or Declined."""
        return asking(self.library, self.host, self.connection)

    def is_alive(self) -> bool:
        """Return whether its connection stands."""
        return is_alive(self.library, self.connection)

    def ask(self) -> None:
        """Have it answer something."""
        with self.asking():
            self.connection.getLibVersion()

    def capacity(self) -> tuple[float, int]:
        """Return its memory in MiB, and how many processors it has."""
        with self.asking():
            _, memory, processors, *_ = self.connection.getInfo()
        return memory, processors

    # Domains

    def find(self, uuid: str) -> Domain | None:
        """Return a domain by its UUID."""
        try:
            with self.asking():
                return self._domain(self.connection.lookupByUUIDString(uuid))
        except Gone:
            return None

    def uuid_of(self, name: str) -> str | None:
        """Return the UUID of the domain that has a name."""
        try:
            with self.asking():
                return str(self.connection.lookupByName(name).UUIDString())
        except Gone:
            return None

    def domains(self) -> list[Domain]:
        """Return all domains, also those that are off."""
        with self.asking():
            return [self._domain(each) for each in self.connection.listAllDomains()]

    def define(self, xml: str) -> Domain:
        """Define a domain, or define it anew."""
        with self.asking():
            return self._domain(self.connection.defineXML(xml))

    def _domain(self, domain: Any) -> Domain:
        return Domain(self.library, domain, asking=self.asking)

    # Volumes

    def pool_of(self, *, name: str | None = None, path: str | None = None) -> Pool | None:
        """Return the pool that has a name, or in whose directory a path lies."""
        pool = self._pool(name=name, path=path)
        if pool is None:
            return None
        with self.asking():
            root = _parsed(pool.XMLDesc())
        source = root.find("source")
        said = "" if source is None else ElementTree.tostring(source, encoding="unicode")
        return Pool(type=root.get("type", "dir"), source="".join(said.split()))

    def volume(self, path: str) -> Volume | None:
        """Return the volume at a path, as it is on disk now."""
        pool = self._pool(path=path)
        if pool is None:
            return None
        with self.asking():
            pool.refresh()
            try:
                root = _parsed(pool.storageVolLookupByName(basename(path)).XMLDesc())
            except self.library.libvirtError as error:
                if error.get_error_code() == self.library.VIR_ERR_NO_STORAGE_VOL:
                    return None
                raise
        made = root.find("target/format")
        backing = root.find("backingStore/format")
        return Volume(
            path=path,
            capacity=int(root.findtext("capacity", "0")),
            format="raw" if made is None else made.get("type", "raw"),
            backing=root.findtext("backingStore/path"),
            backing_format=None if backing is None else backing.get("type"),
        )

    def make(self, volume: Volume) -> None:
        """Make a volume anew, empty, also where there was one."""
        pool = self._pool(path=volume.path)
        if pool is None:
            where = dirname(volume.path)
            raise Declined(f"{self.host} has no storage pool at {where}: define one (virsh pool-define-as)")
        self.delete(volume.path)
        with self.asking():
            pool.createXML(_volume_xml(volume))

    def delete(self, path: str) -> None:
        """Delete the volume at a path, if there is one."""
        pool = self._pool(path=path)
        if pool is not None and self.volume(path) is not None:
            with self.asking():
                pool.storageVolLookupByName(basename(path)).delete()

    def _pool(self, *, name: str | None = None, path: str | None = None) -> Any:
        with self.asking():
            for pool in self.connection.listAllStoragePools(
                self.library.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE
            ):
                if pool.name() == name:
                    return pool
                if path is not None and _parsed(pool.XMLDesc()).findtext("target/path") == dirname(path):
                    return pool
        return None


def _parsed(xml: str) -> ElementTree.Element:
    return ElementTree.fromstring(xml)  # noqa: S314 - libvirt made it


def _volume_xml(volume: Volume) -> str:
    return "".join(_volume_lines(volume))


def _volume_lines(volume: Volume) -> Iterator[str]:
    yield f"<volume><name>{escape(basename(volume.path))}</name>"
    yield f'<capacity unit="bytes">{volume.capacity}</capacity>'
    # Made in whole now, or a full disk would only be noticed by the guest.
    allocation = volume.capacity if volume.format == "raw" else 0
    yield f'<allocation unit="bytes">{allocation}</allocation>'
    yield f'<target><format type="{escape(volume.format)}"/></target>'
    if volume.backing is not None:
        made = "" if volume.backing_format is None else f'<format type="{escape(volume.backing_format)}"/>'
        yield f"<backingStore><path>{escape(volume.backing)}</path>{made}</backingStore>"
    yield "</volume>"
