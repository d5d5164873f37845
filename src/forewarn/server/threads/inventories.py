"""Asking drivers what there is, beside everything else: a host that hangs holds up its own answer alone.

Each question has a thread of its own. One that is not answered in time cannot be ended: it is left behind,
and no more are asked of that driver than threads may be left.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from forewarn.control.driver import Driver, Listing
from forewarn.control.rollouts.host_listings import HostListing, HostListings, MachineSightings
from forewarn.core.errors import Conflict, ForewarnError, Invalid, Unavailable
from forewarn.core.model.found_fleet import FoundFleet, together
from forewarn.core.model.host import Host
from forewarn.core.time_formats import format_span
from forewarn.server.threads.jobs import RunJob
from forewarn.server.threads.reads import RunRead

log = logging.getLogger(__name__)

# Hosts that are asked together.
AT_ONCE = 16
# Threads of a driver whose questions were never answered.
MOST_LEFT = 64
# Hosts that are named if none of them can be reached.
SHOWN = 3
# For a driver that names none, in seconds: a whole cloud takes longer than one call.
PATIENCE = 60.0
# How often the machines of a rollout are looked at, in seconds. It is a fraction of the shortest useful
# `health` of a rollout, and lists a large cloud only three times a minute.
LOOK_EVERY = 20.0


class Listings:
    """Asks drivers for their inventories."""

    def __init__(self, drivers: Mapping[str, Driver]) -> None:
        self._drivers = drivers
        self._left: Counter[str] = Counter()  # threads, by driver; owner: the loop that asks

    def lister(self, source: str) -> Listing:
        """Return a driver that lists what there is; Invalid if this one does not."""
        driver = self._drivers[source]
        if not isinstance(driver, Listing):
            raise Invalid(
                f'from: driver "{source}" cannot list what there is: declare it (forewarn fleet apply)'
            )
        return driver

    async def ask(self, source: str, hosts: Sequence[Host]) -> FoundFleet:
        """Return what there is; a host that does not answer in time is unreachable."""
        driver = self.lister(source)
        if not driver.lists_by_host:
            try:
                return await self._question(source, driver, hosts)
            except Unavailable as error:
                said = f"driver {source} cannot list what there is, and nothing is imported"
                raise Conflict(f"{said}: {error}") from None
        if not hosts:
            raise Invalid(f"from: no host has driver {source} yet: name one (--host NAME=URI)")
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(host: Host) -> FoundFleet:
            async with turns:
                try:
                    return await self._question(source, driver, [host])
                except ForewarnError as error:
                    return FoundFleet(unreachable={host.name: f"{error}"})

        found = together(await asyncio.gather(*map(one, hosts)))
        if len(found.unreachable) == len(hosts):
            raise Conflict(_nobody_reached(source, found))  # to ask again at once would not help
        return found

    async def _question(self, source: str, driver: Listing, hosts: Sequence[Host]) -> FoundFleet:
        """Ask in a thread that is given up if it takes too long."""
        if self._left[source] >= MOST_LEFT:
            left = f"{MOST_LEFT} earlier questions to {source} were never answered"
            raise Unavailable(f"{left}: start the server again")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[FoundFleet] = loop.create_future()

        def settle(found: FoundFleet | ForewarnError) -> None:
            self._left[source] -= 1
            if answer.done():
                return
            if isinstance(found, ForewarnError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def ask() -> None:
            found = _asked(source, driver, hosts)
            with suppress(RuntimeError):  # the server has stopped meanwhile
                loop.call_soon_threadsafe(settle, found)

        try:
            threading.Thread(target=ask, name="forewarn-inventory", daemon=True).start()
        except RuntimeError as error:  # the process may have no more threads
            raise Unavailable(f"{source} cannot be asked now ({error}): try again") from None
        self._left[source] += 1
        seconds = _patience(self._drivers[source], len(hosts))
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError:
            raise Unavailable(f"no answer within {format_span(seconds)}") from None


class MachineWatch:
    """Looks at the machines of rollouts: one that stops after its work is not well."""

    def __init__(
        self,
        listings: Listings,
        looks: HostListings,
        sightings: MachineSightings,
        *,
        read: RunRead,
        run: RunJob,
    ) -> None:
        self._listings = listings
        self._looks = looks
        self._sightings = sightings
        self._read = read
        self._run = run

    async def run(self) -> None:
        """Look again and again; drivers that cannot tell are asked the next time."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await self.look()

    async def look(self) -> None:
        """Look once."""
        try:
            looks = await self._read(self._looks.load)
        except ForewarnError as error:
            log.debug("no rollout is read while the database is silent: %s", error)
            return
        for each in looks:
            try:
                await self._take(each)
            except ForewarnError as error:
                log.info("driver %s does not say which machines run: %s", each.driver, error)

    async def _take(self, look: HostListing) -> None:
        seen = look.seen(await self._listings.ask(look.driver, look.hosts))
        if seen:
            await self._run(lambda tx: self._sightings.save(tx, seen))


def _nobody_reached(source: str, found: FoundFleet) -> str:
    silent = [f"{host} ({why})" for host, why in sorted(found.unreachable.items())]
    more = f" and {len(silent) - SHOWN} more" if len(silent) > SHOWN else ""
    said = f"driver {source} reaches none of its hosts, and nothing is imported"
    return f"{said}: {', '.join(silent[:SHOWN])}{more}"


def _asked(source: str, driver: Listing, hosts: Sequence[Host]) -> FoundFleet | ForewarnError:
    try:
        return driver.inventory(hosts)
    except ForewarnError as error:
        return error
    except BaseException as error:  # also SystemExit: the question must be answered
        log.debug("driver %s cannot list", source, exc_info=True)
        return Unavailable(f"{type(error).__name__}: {error}")


def _patience(driver: Driver, hosts: int) -> float:
    limits = driver.limits
    return PATIENCE if limits is None else limits.timeout.total_seconds() * max(1, hosts)
