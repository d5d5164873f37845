"""The libvirt of one host: its domains, storage pools and volumes."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from os.path import basename, dirname
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from forewarn.core.basic_types import HostName
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.library import LibvirtRefused, NoSuchDomain, converted_errors, is_alive


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume of a storage pool."""

    path: str
    capacity: int  # in bytes
    format: str = "raw"
    backing: str | None = None  # the path of the backing file
    backing_format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A storage pool; equal pools of a network type are the same storage on two hosts."""

    type: str
    source: str  # as XML


class Hypervisor:
    """A connection to the libvirt of a host."""

    def __init__(self, library: Any, connection: Any, *, host: HostName) -> None:
        self.library = library
        self.host = host
        self.connection = connection

    def converted(self) -> AbstractContextManager[None]:
        """Convert libvirt's errors to NoLibvirtAnswer or LibvirtRefused."""
        return converted_errors(self.library, self.host, self.connection)

    def is_alive(self) -> bool:
        """Return whether the connection is open."""
        return is_alive(self.library, self.connection)

    def ping(self) -> None:
        """Raise NoLibvirtAnswer if the host does not answer."""
        with self.converted():
            self.connection.getLibVersion()

    def capacity(self) -> tuple[float, int]:
        """Return the memory in MiB and the number of processors."""
        with self.converted():
            _, memory, processors, *_ = self.connection.getInfo()
        return memory, processors

    # Domains

    def find(self, uuid: str) -> Domain | None:
        """Return a domain by its UUID."""
        try:
            with self.converted():
                return self._domain(self.connection.lookupByUUIDString(uuid))
        except NoSuchDomain:
            return None

    def uuid_of(self, name: str) -> str | None:
        """Return the UUID of the domain with a name."""
        try:
            with self.converted():
                return str(self.connection.lookupByName(name).UUIDString())
        except NoSuchDomain:
            return None

    def domains(self) -> list[Domain]:
        """Return all domains, including those that are off."""
        with self.converted():
            return [self._domain(each) for each in self.connection.listAllDomains()]

    def define(self, xml: str) -> Domain:
        """Define a domain, or replace its definition."""
        with self.converted():
            return self._domain(self.connection.defineXML(xml))

    def _domain(self, domain: Any) -> Domain:
        return Domain(self.library, domain, converted=self.converted)

    # Volumes

    def pool_of(self, *, name: str | None = None, path: str | None = None) -> Pool | None:
        """Return the pool with a name, or the pool whose directory contains a path."""
        pool = self._pool(name=name, path=path)
        if pool is None:
            return None
        with self.converted():
            root = _parsed(pool.XMLDesc())
        source = root.find("source")
        text = "" if source is None else ElementTree.tostring(source, encoding="unicode")
        return Pool(type=root.get("type", "dir"), source="".join(text.split()))

    def volume(self, path: str) -> Volume | None:
        """Return the volume at a path, after a refresh of its pool."""
        pool = self._pool(path=path)
        if pool is None:
            return None
        with self.converted():
            pool.refresh()
            try:
                root = _parsed(pool.storageVolLookupByName(basename(path)).XMLDesc())
            except self.library.libvirtError as error:
                if error.get_error_code() == self.library.VIR_ERR_NO_STORAGE_VOL:
                    return None
                raise
        format_ = root.find("target/format")
        backing = root.find("backingStore/format")
        return Volume(
            path=path,
            capacity=int(root.findtext("capacity", "0")),
            format="raw" if format_ is None else format_.get("type", "raw"),
            backing=root.findtext("backingStore/path"),
            backing_format=None if backing is None else backing.get("type"),
        )

    def create(self, volume: Volume) -> None:
        """Create an empty volume; replace an existing one."""
        pool = self._pool(path=volume.path)
        if pool is None:
            where = dirname(volume.path)
            raise LibvirtRefused(
                f"{self.host} has no storage pool at {where}: define one (virsh pool-define-as)"
            )
        self.delete(volume.path)
        with self.converted():
            pool.createXML(_volume_xml(volume))

    def delete(self, path: str) -> None:
        """Delete the volume at a path, if it exists."""
        pool = self._pool(path=path)
        if pool is not None and self.volume(path) is not None:
            with self.converted():
                pool.storageVolLookupByName(basename(path)).delete()

    def _pool(self, *, name: str | None = None, path: str | None = None) -> Any:
        with self.converted():
            for pool in self.connection.listAllStoragePools(
                self.library.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE
            ):
                if pool.name() == name:
                    return pool
                if path is not None and _parsed(pool.XMLDesc()).findtext("target/path") == dirname(path):
                    return pool
        return None


def _parsed(xml: str) -> ElementTree.Element:
    return ElementTree.fromstring(xml)  # noqa: S314 - libvirt wrote it


def _volume_xml(volume: Volume) -> str:
    # Allocate a raw volume fully now, so that a full disk fails here and not in the guest.
    allocation = volume.capacity if volume.format == "raw" else 0
    backing = ""
    if volume.backing is not None:
        kind = "" if volume.backing_format is None else f'<format type="{escape(volume.backing_format)}"/>'
        backing = f"<backingStore><path>{escape(volume.backing)}</path>{kind}</backingStore>"
    return (
        f"<volume><name>{escape(basename(volume.path))}</name>"
        f'<capacity unit="bytes">{volume.capacity}</capacity>'
        f'<allocation unit="bytes">{allocation}</allocation>'
        f'<target><format type="{escape(volume.format)}"/></target>'
        f"{backing}</volume>"
    )
