"""The fleet of one test: machines, groups and hosts come into being when they are first named."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Literal

from forewarn.api.services import Services
from forewarn.control.callers import CallerReads
from forewarn.core.model import event
from forewarn.store.batch import Transact
from forewarn.testing.events import Event
from forewarn.testing.faults import FaultName, PutFault, fault_of
from forewarn.testing.fleet_service import TEST, FleetService, running_service
from forewarn.testing.host import Host
from forewarn.testing.machine import Machine
from forewarn.wire.fleet import read_fleet, write_fleet

__tracebackhide__ = True  # pytest shows the line of the test instead

# As many events as are read at once.


class Fleet:
    """What the fixture `forewarn` gives: at first only hosts, and a clock that stands until it is turned."""

    def __init__(self, service: FleetService) -> None:
        self._service = service
        self._machines: dict[str, Machine] = {}

    def machine(
        self,
        name: str,
        *,
        group: str | None = None,
        update_domain: int | None = None,
        host: str | None = None,
        priority: Literal["regular", "spot"] | None = None,
    ) -> Machine:
        """Return a machine, made when it is first named; what it is, is said then.

        Without a host it is on host-1 or, if it has another update domain than 0, on host-2 and so on.
        """
        declared = {"group": group, "update_domain": update_domain, "host": host, "priority": priority}
        given = {key: value for key, value in declared.items() if value is not None}
        known = self._machines.get(name.casefold())
        if known is not None:
            if given:
                raise ValueError(
                    f"machine {name} is there: say its {' and '.join(given)} when it is first named"
                )
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
        """Declare a group that should be something else than an availability set without a policy.

        It gets as many update domains as its machines need, or as are said here.
        """
        wanted = {"kind": kind, "update_domains": update_domains, "policy": dict(policy or {})}
        self._change(lambda fleet: fleet["groups"].update({name: wanted}))

    def host(self, name: str) -> Host:
        """Return a host, made when it is first named; host-1 to host-3 are there."""
        self._change(lambda fleet: fleet["hosts"].setdefault(name, {}))
        return Host(self._service, name)

    @property
    def events(self) -> list[Event]:
        """All events that are listed now, oldest first."""
        return [Event(self._service, event.id) for event in self._service.read(_listed)]

    @property
    def now(self) -> datetime:
        """Service time."""
        return self._service.now()

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> datetime:
        """Turn the clock; when this returns all that fell due on the way is done, and guests can see it."""
        way = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        self._service.act_alone(
            lambda services, transact: services.timekeeper.advance(transact, way.total_seconds(), by=TEST)
        )
        self._service.note(TEST, f"has turned the clock by {way}")
        return self.now

    def fault(
        self,
        name: FaultName,
        *,
        calls: int | None = None,
        delay: timedelta | None = None,
        notice: timedelta | None = None,
    ) -> PutFault:
        """Let the guests of all machines meet a fault, those that are made later too."""
        return PutFault(self._service, fault_of(name, (), calls=calls, delay=delay, notice=notice))

    @property
    def log(self) -> Sequence[str]:
        """What the test and its guests did, a line each; pytest prints it when the test fails."""
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
        """Declare the fleet anew, as a fleet file would."""

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


def _listed(reads: CallerReads) -> Sequence[event.Event]:
    return [each.event for each in reads.views.coming()]


@contextmanager
def opened_fleet() -> Iterator[Fleet]:
    """Give a fleet of its own, and take it down."""
    with running_service() as service:
        yield Fleet(service)
