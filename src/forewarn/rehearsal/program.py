"""A whole rehearsal: a private service, endpoints, guests, the scenario, and the report."""

import asyncio
import signal
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import uvloop

from forewarn.core.errors import Conflict
from forewarn.rehearsal.commands import RunningGuest
from forewarn.rehearsal.director import Director
from forewarn.rehearsal.ledger import Account, Ledger, Note
from forewarn.rehearsal.proxy import Endpoint, House
from forewarn.rehearsal.report import Report, report
from forewarn.rehearsal.scenario import Scenario
from forewarn.rehearsal.service import PrivateService, addresses, private_service
from forewarn.rehearsal.stage import Faults, Stage, until

# For guests that have work left when all is over; real seconds.
SATISFIED_WITHIN = 120.0


class Audience(Protocol):
    """Whoever watches a rehearsal."""

    def opened(
        self, endpoints: Mapping[str, str], accounts: Mapping[str, Account], elapsed: Callable[[], timedelta]
    ) -> None:
        """Be told where the guests should poll; the accounts and the time go on changing."""
        ...

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Be told what has happened."""
        ...

    def satisfied(self) -> bool:
        """Say whether the guests may be ended, once all is over."""
        ...


def rehearse(scenario: Scenario, audience: Audience) -> Report:
    """Run a scenario; returns when it is over. SIGINT and SIGTERM end it with what there is to report."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_rehearse(scenario, audience))


async def _rehearse(scenario: Scenario, audience: Audience) -> Report:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="forewarn-rehearsal-")))
        service = await stack.enter_async_context(
            private_service(folder, fleet=scenario.fleet, clock=scenario.clock)
        )
        set_up = _set_up(scenario, service, audience)
        endpoints = await _open(scenario, set_up.house, stack)
        audience.opened(endpoints, set_up.house.ledger.accounts, set_up.house.stage.elapsed)
        for guest in scenario.guests:
            running = RunningGuest(
                guest, endpoints[guest.machine], note=set_up.note, ended=set_up.house.ledger.ended
            )
            await running.start()
            stack.push_async_callback(running.stop)
        return await _played(scenario, service, set_up, audience)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SetUp:
    house: House
    note: Note


def _set_up(scenario: Scenario, service: PrivateService, audience: Audience) -> _SetUp:
    stage = Stage(service.clock)

    def note(who: str, what: str) -> None:
        audience.noted(stage.elapsed(), who, what)

    faults = Faults(scenario.faults, stage)
    ledger = Ledger(scenario.machines, note=note)
    house = House(service=service.guests, stage=stage, faults=faults, ledger=ledger)
    return _SetUp(house=house, note=note)


async def _open(scenario: Scenario, house: House, stack: AsyncExitStack) -> dict[str, str]:
    """Open an endpoint for each machine, on the port that the fleet gives it or on a free one."""
    known, urls = addresses(scenario.fleet), {}
    for machine in scenario.fleet.machines:
        endpoint = Endpoint(machine.name, known[machine.name], house)
        try:
            urls[str(machine.name)] = await endpoint.open(machine.port or 0)
        except OSError as error:
            port, why = machine.port, error.strerror
            raise Conflict(f"port {port} of machine {machine.name} cannot be opened: {why}") from None
        stack.push_async_callback(endpoint.close)
    return urls


async def _played(scenario: Scenario, service: PrivateService, set_up: _SetUp, audience: Audience) -> Report:
    house = set_up.house
    director = Director(scenario, service, stage=house.stage, ledger=house.ledger, note=set_up.note)
    troubles = []
    try:
        await director.run()
        await until(audience.satisfied, within=SATISFIED_WITHIN)
    except asyncio.CancelledError:
        # Ctrl-C: what there is so far is worth a report.
        troubles.append("it was interrupted")
    began = house.stage.began
    return report(
        scenario,
        house.ledger.accounts,
        await director.events(),
        began=began or service.clock.now(),
        ended=service.clock.now(),
        troubles=[*director.troubles, *troubles],
    )
