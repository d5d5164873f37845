"""A real `forewarn serve` in a bed: guests reach it at 169.254.169.254, and libvirt carries out the work."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.helpers.programs.process import Program, until
from tests.machines.bed import Bed, Guest
from tests.machines.bed.bed import METADATA

# Emulated machines on a busy computer: a second may become a minute.
WORK_PATIENCE = 240.0
# Short times, because tests wait for the steps.
OPTIONS = {"timeout": '"30s"', "freeze-for": '"1s"', "shutdown-for": '"20s"', "reboot-for": '"60s"'}


class Service(Program):
    """The service, called from outside its network."""

    def __init__(self, bed: Bed, folder: Path, *flags: str | Path) -> None:
        super().__init__(
            folder,
            *flags,
            clock="system",
            listen=(f"{METADATA}:80",),
            operator="127.0.0.1:8170",
            before=bed.inside,
        )
        self._bed = bed

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Call the operator API from its own network."""
        with self._bed.entered():
            return super().call(method, path, **more)

    # Work on machines

    def order(self, path: str, **more: Any) -> str:
        """Place an order; return its id."""
        return str(self.post(path, json=more or None)["order"]["id"])

    def seen(self, order: str) -> dict[str, Any]:
        """Return an order."""
        found: dict[str, Any] = self.get(f"/v1/orders/{order}")
        return found.get("order", found)

    def steps(self, order: str) -> dict[str, dict[str, Any]]:
        """Return the steps of an order by machine."""
        stages = self.seen(order)["stages"]
        return {step["machine"]: step for stage in stages for step in stage["steps"]}

    def wait_for_order(self, order: str, *states: str, within: float = WORK_PATIENCE) -> dict[str, Any]:
        """Wait until an order has one of these states (default: `done`); return it."""
        wanted = states or ("done",)

        def reached() -> dict[str, Any] | None:
            found = self.seen(order)
            return found if found["state"] in wanted else None

        try:
            return until(reached, what=f"an order that is {' or '.join(wanted)}", within=within)
        except AssertionError as late:
            raise AssertionError(f"{late}; it is {self.seen(order)}") from None

    def host_of(self, machine: str) -> str | None:
        """Return the host of a machine from the service."""
        found: str | None = self.get(f"/v1/machines/{machine}")["machine"]["host"]
        return found

    def kinds(self, **of: str) -> list[str]:
        """Return the kinds of all records, oldest first."""
        records = self.get("/v1/history", params={"limit": 1000, **of})["records"]
        return [record["kind"] for record in reversed(records)]


def fleet(
    bed: Bed, guests: Mapping[Guest, str], *, mobility: str, spot: bool, room: Mapping[str, int]
) -> str:
    """Write a fleet of a bed's hosts and guests; `room` limits the machines of each host."""
    lines = ["[defaults]", 'driver = "libvirt"']
    for host in bed.hosts.values():
        lines += [f"[hosts.{host.name}]", f'uri = "{host.uri}"']
        lines += [f"resources = {{ machines = {room[host.name]} }}"] if room else []
    for guest, host_name in guests.items():
        lines += [
            "[[machines]]",
            f'name = "{guest.name}"',
            f'host = "{host_name}"',
            f'vm-id = "{guest.vm_id}"',
        ]
        lines += [f'address = "{guest.address}"', f'mac = "{guest.mac}"']
        lines += [f'mobility = "{mobility}"', f'priority = "{"spot" if spot else "regular"}"']
        lines += ["resources = { machines = 1 }"] if room else []
    return "\n".join(lines) + "\n"


@contextmanager
def serving(
    bed: Bed,
    folder: Path,
    guests: Mapping[Guest, str],
    *,
    mobility: str = "live",
    spot: bool = False,
    room: Mapping[str, int] | None = None,
    options: Mapping[str, str] | None = None,
    more: str = "",
) -> Iterator[Service]:
    """Serve a fleet of guests; `options` are those of `[drivers.libvirt]`, as TOML values.

    `more` is additional TOML of the fleet.
    """
    folder.joinpath("fleet.toml").write_text(
        fleet(bed, guests, mobility=mobility, spot=spot, room=room or {}) + more
    )
    driver = [f"{name} = {value}" for name, value in {**OPTIONS, **(options or {})}.items()]
    lines = ["[times]", 'linger = "1s"', "[drivers.libvirt]", *driver]
    folder.joinpath("settings.toml").write_text("\n".join(lines) + "\n")
    flags = ("--config", folder / "settings.toml", "--fleet", folder / "fleet.toml")
    with Service(bed, folder, *flags) as service:
        try:
            yield service
        except BaseException as error:
            error.add_note(f"the service said:\n{service.err.text[-4000:]}")
            raise
