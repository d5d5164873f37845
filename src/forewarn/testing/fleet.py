"""The fleet of a test. Machines, groups and hosts are created at their first mention."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Literal

from forewarn.api.services import Services
from forewarn.store.batch import Transact
from forewarn.testing.events import Event
from forewarn.testing.faults import FaultName, PutFault, fault_of
from forewarn.testing.fleet_service import TEST, FleetService, running_service
from forewarn.testing.machine import Host, Machine
from forewarn.wire.fleet import read_fleet, write_fleet

__tracebackhide__ = True  # pytest shows the line of the test instead


class Fleet:
    """The value of the fixture `forewarn`: at first only hosts, and a manual clock."""

    def __init__(self, service: FleetService) -> None:
        self._service = service
        self._machines: dict[str, Machine] = {}  # owner: the thread of the test

    def machine(
        self,
        name: str,
        *,
        group: str | None = None,
        update_domain: int | None = None,
        host: str | None = None,
        priority: Literal["regular", "spot"] | None = None,
    ) -> Machine:
        """Return a machine; the first call creates it with these attributes.

        Its default host is host-1 for update domain 0, host-2 for update domain 1, and so on.
        """
        declared = {"group": group, "update_domain": update_domain, "host": host, "priority": priority}
        given = {key: value for key, value in declared.items() if value is not None}
        known = self._machines.get(name.casefold())
        if known is not None:
            if given:
                raise ValueError(f"machine {name} exists: set its {' and '.join(given)} in the first call")
            return known
        return self._add(name, {"host": f"host-{(update_domain or 0) + 1}", **given})

    def group(
        self,
        name: str,
        *,
        kind: Literal["availability-set", "scale-set", "cloud-service"] = "availability-set",
        update_domains: int = 1,
        policy: Mapping[str, Any] | None = None,
    ) -> None:
        """Declare a group; needed only if it is not an availability set without a policy.

        It gets at least `update_domains` update domains, and more if its machines need them.
        """
        wanted = {"kind": kind, "update_domains": update_domains, "policy": dict(policy or {})}
        self._change(lambda fleet: fleet["groups"].update({name: wanted}))

    def host(self, name: str) -> Host:
        """Return a host; the first call creates it. host-1 to host-3 exist from the start."""
        self._change(lambda fleet: fleet["hosts"].setdefault(name, {}))
        return Host(self._service, name)

    @property
    def events(self) -> list[Event]:
        """All current events, oldest first."""
        coming = self._service.read(lambda reads: reads.views.coming())
        return [Event(self._service, each.event.id) for each in coming]

    @property
    def now(self) -> datetime:
        """Service time."""
        return self._service.now()

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> datetime:
        """Advance the clock; returns once everything that became due is done and visible to guests."""
        by = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        self._service.act_alone(
            lambda services, transact: services.timekeeper.advance(transact, by.total_seconds(), by=TEST)
        )
        self._service.note(TEST, f"has advanced the clock by {by}")
        return self.now

    def fault(
        self,
        name: FaultName,
        *,
        calls: int | None = None,
        delay: timedelta | None = None,
        notice: timedelta | None = None,
    ) -> PutFault:
        """Inject a fault into the answers to all guests, including those of later machines."""
        return PutFault(self._service, fault_of(name, (), calls=calls, delay=delay, notice=notice))

    @property
    def log(self) -> Sequence[str]:
        """The actions of the test and its guests, one per line; pytest prints them if the test fails."""
        return tuple(self._service.log)

    def _add(self, name: str, given: Mapping[str, Any]) -> Machine:
        def added(fleet: dict[str, Any]) -> None:
            fleet["hosts"].setdefault(given["host"], {})
            if "group" in given:
                group = fleet["groups"].setdefault(given["group"], {"kind": "availability-set"})
                needed = given.get("update_domain", 0) + 1
                group["update_domains"] = max(group.get("update_domains", 1), needed)
            fleet["machines"].append({"name": name, **given})

        self._change(added)
        machine = Machine(self._service, name, self._service.open_endpoint(name))
        self._machines[name.casefold()] = machine
        return machine

    def _change(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the declaration of the fleet, and apply it as a fleet file."""

        def changed(services: Services, transact: Transact) -> None:
            declared = {
                "groups": {},
                "hosts": {},
                "machines": [],
                **write_fleet(services.reads.fleet.views.fleet()),
            }
            change(declared)
            services.fleet.declarations.apply_fleet(transact, read_fleet(declared), by=TEST)

        self._service.act_alone(changed)


@contextmanager
def opened_fleet() -> Iterator[Fleet]:
    """Yield a new fleet, and stop its service afterwards."""
    with running_service() as service:
        yield Fleet(service)
