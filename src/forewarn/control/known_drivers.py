"""Drivers as use cases know them: by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forewarn.core.errors import Invalid
from forewarn.core.spelling import hint
from forewarn.wire.wording import either, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDrivers:
    """The drivers there were when the server started."""

    names: frozenset[str] = frozenset()  # that hosts and orders may be given
    kinds: Mapping[str, str] = field(default_factory=dict)  # also of those that cannot be used
    unusable: Mapping[str, str] = field(default_factory=dict)  # why, by name

    def unusable_because(self, driver: str) -> str | None:
        """Say why a driver cannot be used; None: it can."""
        if driver in self.names:
            return None
        why = self.unusable.get(driver)
        return f"driver {driver} cannot be used: {why}" if why else f"driver {driver} is not installed"

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
