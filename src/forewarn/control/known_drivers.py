"""Drivers as use cases know them: by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forewarn.core.errors import Invalid
from forewarn.core.redaction import driver_named
from forewarn.core.spelling import hint
from forewarn.wire.texts import either, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDrivers:
    """The drivers there were when the server started."""

    names: frozenset[str] = frozenset()  # that hosts and orders may be given
    kinds: Mapping[str, str] = field(default_factory=dict)  # also of those that cannot be used
    unusable: Mapping[str, str] = field(default_factory=dict)  # why, by name
    listing: frozenset[str] = frozenset()  # that can tell what there is

    def unusable_because(self, driver: str) -> str | None:
        """Say why a driver cannot be used; None: it can."""
        if driver in self.names:
            return None
        why = self.unusable.get(driver)
        named = driver_named(driver)
        return f"{named} cannot be used: {why}" if why else f"{named} is not installed"

    def check(self, driver: str | None, *, where: str = "driver") -> None:
        """Refuse a driver that is not there, or cannot be used, and say what there is or why not."""
        if driver is None or driver in self.names:
            return
        if driver in self.unusable:
            raise Invalid(f"{where}: {shown(driver)} cannot be used: {self.unusable[driver]}")
        how = hint(driver, self.names) or (
            f"; install the package that brings it, or set [drivers.{driver}], and start the server again"
        )
        raise Invalid(f"{where}: expected {either(sorted(self.names))}, got {shown(driver)}{how}")

    def check_listing(self, driver: str, *, where: str) -> None:
        """Refuse a driver that cannot tell what there is, and name those that can."""
        if driver in self.listing:
            return
        if driver in self.unusable:
            self.check(driver, where=where)
        if not self.listing:
            missing = "install forewarn[libvirt] or forewarn[openstack], or declare it (forewarn fleet apply)"
            raise Invalid(f"{where}: no driver here can list what there is: {missing}")
        names = sorted(self.listing)
        expected = f"{where}: expected {either(names)}"
        if driver in self.names:
            raise Invalid(f"{expected}: driver {shown(driver)} cannot list what there is")
        raise Invalid(f"{expected}, got {shown(driver)}{hint(driver, names)}")
