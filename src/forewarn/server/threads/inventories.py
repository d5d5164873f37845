"""Inventories of drivers: the hosts and machines that a driver finds.

Each query runs on its own thread, so a host that hangs delays only its own answer. A thread that does not
answer in time cannot be ended: it is abandoned, and the number of abandoned threads of a driver is limited.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from forewarn.api.services import RunRead, RunUseCase
from forewarn.control.driver import Driver, Listing
from forewarn.control.rollouts.host_listings import HostListing, HostListings, MachineSightings
from forewarn.core.errors import Conflict, ForewarnError, Invalid, Unavailable
from forewarn.core.model.found_fleet import FoundFleet, together
from forewarn.core.model.host import Host
from forewarn.core.time_formats import format_span

log = logging.getLogger(__name__)

# Hosts that are queried at once.
AT_ONCE = 16
# Abandoned threads of one driver.
MOST_ABANDONED = 64
# Hosts that an error message names.
SHOWN = 3
# The timeout of a driver without one, in seconds: listing a whole cloud takes longer than other calls.
TIMEOUT = 60.0
# How often the machines of rollouts are checked, in seconds. It is a fraction of the shortest useful
# `health` of a rollout, and lists a large cloud only three times a minute.
LOOK_EVERY = 20.0


class DriverInventories:
    """Asks drivers for their inventories."""

    def __init__(self, drivers: Mapping[str, Driver]) -> None:
        self._drivers = drivers
        # Queries by driver that run or never answered. Owner: the loop that calls `ask`.
        self._unanswered: Counter[str] = Counter()

    def lister(self, source: str) -> Listing:
        """Return a driver; raise Invalid if it has no inventory."""
        driver = self._drivers[source]
        if not isinstance(driver, Listing):
            raise Invalid(
                f'from: driver "{source}" has no inventory: declare the fleet instead (forewarn fleet apply)'
            )
        return driver

    async def ask(self, source: str, hosts: Sequence[Host]) -> FoundFleet:
        """Return the hosts and machines of a driver; a host that does not answer in time is unreachable."""
        driver = self.lister(source)
        if not driver.lists_by_host:
            try:
                return await self._query(source, driver, hosts)
            except Unavailable as error:
                raise Conflict(
                    f"driver {source} cannot list its hosts and machines; nothing is imported: {error}"
                ) from None
        if not hosts:
            raise Invalid(f"from: no host has driver {source} yet: name one (--host NAME=URI)")
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(host: Host) -> FoundFleet:
            async with turns:
                try:
                    return await self._query(source, driver, [host])
                except ForewarnError as error:
                    return FoundFleet(unreachable={host.name: f"{error}"})

        found = together(await asyncio.gather(*map(one, hosts)))
        if len(found.unreachable) == len(hosts):
            # Not Unavailable: an immediate retry would not help.
            raise Conflict(_none_reached(source, found))
        return found

    async def _query(self, source: str, driver: Listing, hosts: Sequence[Host]) -> FoundFleet:
        """Run a query on a thread that is abandoned after the timeout."""
        if self._unanswered[source] >= MOST_ABANDONED:
            raise Unavailable(
                f"{MOST_ABANDONED} earlier queries to {source} were never answered: restart the server"
            )
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[FoundFleet] = loop.create_future()

        def settle(found: FoundFleet | ForewarnError) -> None:
            self._unanswered[source] -= 1
            if answer.done():
                return
            if isinstance(found, ForewarnError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def ask() -> None:
            found = _inventory(source, driver, hosts)
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(settle, found)

        try:
            threading.Thread(target=ask, name="forewarn-inventory", daemon=True).start()
        except RuntimeError as error:  # the process may have no more threads
            raise Unavailable(f"{source} cannot be asked now ({error}): try again") from None
        self._unanswered[source] += 1
        limits = self._drivers[source].limits
        seconds = TIMEOUT if limits is None else limits.timeout.total_seconds() * max(1, len(hosts))
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError:
            raise Unavailable(f"no answer within {format_span(seconds)}") from None


class MachineWatch:
    """Watches the machines of rollouts: a machine that stops after its step is unhealthy."""

    def __init__(
        self,
        inventories: DriverInventories,
        looks: HostListings,
        sightings: MachineSightings,
        *,
        read: RunRead,
        run: RunUseCase,
    ) -> None:
        self._inventories = inventories
        self._looks = looks
        self._sightings = sightings
        self._read = read
        self._run = run

    async def watch(self) -> None:
        """Look at intervals, without end."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await self.look()

    async def look(self) -> None:
        """Look once; skip drivers that do not answer."""
        try:
            looks = await self._read(self._looks.load)
        except ForewarnError as error:
            log.debug("cannot read rollouts: %s", error)
            return
        for each in looks:
            try:
                await self._save_sightings(each)
            except ForewarnError as error:
                log.info("driver %s does not report which machines run: %s", each.driver, error)

    async def _save_sightings(self, look: HostListing) -> None:
        seen = look.seen(await self._inventories.ask(look.driver, look.hosts))
        if seen:
            await self._run(lambda tx: self._sightings.save(tx, seen))


def _none_reached(source: str, found: FoundFleet) -> str:
    unreached = [f"{host} ({why})" for host, why in sorted(found.unreachable.items())]
    more = f" and {len(unreached) - SHOWN} more" if len(unreached) > SHOWN else ""
    hosts = f"{', '.join(unreached[:SHOWN])}{more}"
    return f"driver {source} reaches none of its hosts; nothing is imported: {hosts}"


def _inventory(source: str, driver: Listing, hosts: Sequence[Host]) -> FoundFleet | ForewarnError:
    try:
        return driver.inventory(hosts)
    except ForewarnError as error:
        return error
    except BaseException as error:  # also SystemExit: the query must be answered
        log.debug("the inventory of driver %s failed", source, exc_info=True)
        return Unavailable(f"{type(error).__name__}: {error}")
