"""A whole rehearsal: where it is played, endpoints, guests, the scenario, and the report."""

import asyncio
import signal
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import httpx
import uvloop

from forewarn.clock import clock_of
from forewarn.control.ledger import Account
from forewarn.core.errors import Conflict, ForewarnError
from forewarn.rehearsal import casting
from forewarn.rehearsal.audition import audition
from forewarn.rehearsal.commands import RunningGuest
from forewarn.rehearsal.director import PATIENCE, Director
from forewarn.rehearsal.operator import Operator
from forewarn.rehearsal.report import Report, report
from forewarn.rehearsal.running import MANUAL, RunningServer, ServerClock
from forewarn.rehearsal.scenario import EVENTS, Scenario
from forewarn.rehearsal.service import PrivateService, private_service
from forewarn.rehearsal.stage import Stage, until
from forewarn.server.wiring import new_id

# For guests that have work left when all is over; real seconds.
SATISFIED_WITHIN = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What whoever watches is told before it begins."""

    scenario: Scenario  # with the names of those who play it
    clock: str  # how time goes, in words
    places: Mapping[str, str]  # where the guest of each machine polls, in words
    endpoints: Mapping[str, str] = field(default_factory=dict)  # the URLs of a private service
    project: str | None = None  # of a running server
    unanswered: timedelta | None = None  # how long it really takes there, if nobody approves


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How a scenario is to be played."""

    scenario: Scenario
    wait: timedelta = PATIENCE  # real time, for every guest to poll for the first time
    # The rest is for a running server.
    project: str | None = None
    players: Mapping[str, str] = field(default_factory=dict)  # the scenario's machines, and who plays them
    paced: bool = False  # whether the scenario's pace was asked for, which only a manual clock can keep to


class Audience(Protocol):
    """Whoever watches a rehearsal."""

    def opened(
        self, opening: Opening, accounts: Mapping[str, Account], elapsed: Callable[[], timedelta]
    ) -> None:
        """Be told where the guests should poll; the accounts and the time go on changing."""
        ...

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Be told what has happened."""
        ...

    def satisfied(self) -> bool:
        """Say whether the guests may be ended, once all is over."""
        ...


def rehearse(wishes: Wishes, audience: Audience) -> Report:
    """Play a scenario in a private service; returns when it is over.

    SIGINT and SIGTERM end it with what there is to report.
    """
    return _run(_in_private(wishes, audience))


def rehearse_on(server: httpx.AsyncClient, wishes: Wishes, audience: Audience) -> Report:
    """Play a scenario on a running server, in a project of its own; ends as one in a private service."""
    return _run(_on_running(server, wishes, audience))


def _run(playing: Coroutine[None, None, Report]) -> Report:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_ending_on_request(playing))


async def _ending_on_request(playing: Coroutine[None, None, Report]) -> Report:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await playing


# In a private service


async def _in_private(wishes: Wishes, audience: Audience) -> Report:
    scenario = wishes.scenario
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="forewarn-rehearsal-")))
        service = await stack.enter_async_context(
            private_service(folder, fleet=scenario.fleet, clock=scenario.clock)
        )
        play = _Play(scenario, service, audience)
        await service.spoil(scenario.faults(None))
        endpoints = {
            str(machine.name): await service.open_door(machine.name, port=machine.port or 0)
            for machine in scenario.fleet.machines
        }
        places = {name: f"{url}{EVENTS}" for name, url in endpoints.items()}
        play.open(Opening(scenario=scenario, clock=scenario.clock, places=places, endpoints=endpoints))
        for guest in scenario.guests:
            running = RunningGuest(guest, endpoints[guest.machine], note=play.note, ended=play.ended)
            await running.start()
            stack.push_async_callback(running.stop)
        return await play.played(wishes.wait)


# On a running server


async def _on_running(api: httpx.AsyncClient, wishes: Wishes, audience: Audience) -> Report:
    async with api:
        asking = Operator(api, terms={})
        clock = ServerClock(await asking.call("GET", "/v1/clock"))
        if wishes.paced and clock.kind != MANUAL:
            raise Conflict(f"the server's clock is {clock.kind}, and keeps its own time: leave --speed out")
        company = await audition(asking, wishes.scenario, project=wishes.project, players=wishes.players)
        scenario, pace = company.scenario, clock_of(wishes.scenario.clock).speed
        server = RunningServer(
            api, scenario=scenario, project=company.project, clock=clock, pace=pace, id_=new_id()
        )
        play = _Play(scenario, server, audience)
        await server.spoil(scenario.faults(None))
        play.open(
            Opening(
                scenario=scenario,
                clock=f"{clock.kind}, turned at {scenario.clock}" if clock.kind == MANUAL else clock.kind,
                places=company.places,
                project=company.project,
                unanswered=casting.unanswered(scenario) / (clock.speed or pace),
            )
        )
        try:
            return await play.played(wishes.wait)
        finally:
            await server.leave()


# Wherever it is


class _Play:
    """A scenario, its venue and its audience, put together."""

    def __init__(self, scenario: Scenario, venue: PrivateService | RunningServer, audience: Audience) -> None:
        self._scenario = scenario
        self._venue = venue
        self._audience = audience
        self._stage = Stage(venue.clock)
        self._places: Mapping[str, str] = {}
        self._exits: dict[str, int] = {}
        self._ledger = venue.ledger
        for machine in scenario.machines:
            self._ledger.admit(machine)
        self._ledger.attend(self.note)

    def note(self, who: str, what: str, *, at: datetime | None = None) -> None:
        """Tell the audience what has happened, now or when it was."""
        began = self._stage.began
        elapsed = self._stage.elapsed() if at is None or began is None else at - began
        self._audience.noted(elapsed, who, what)

    def ended(self, machine: str, code: int) -> None:
        """Be told that a program that was run as a guest is over."""
        self._exits[machine] = code
        self.note(machine, f"its program has ended with {code}")

    def open(self, opening: Opening) -> None:
        """Let the audience in."""
        self._places = opening.places
        self._audience.opened(opening, self._ledger.accounts, self._stage.elapsed)

    async def played(self, wait: timedelta) -> Report:
        """Play it, and say how it went."""
        director = Director(
            self._scenario,
            self._venue,
            stage=self._stage,
            ledger=self._ledger,
            exits=self._exits,
            note=self.note,
        )
        troubles = []
        try:
            await director.run(places=self._places, wait=wait)
            await until(self._audience.satisfied, within=SATISFIED_WITHIN)
        except asyncio.CancelledError:
            # Ctrl-C: what there is so far is worth a report.
            troubles.append("it was interrupted")
        except ForewarnError as refusal:
            troubles.append(f"it could not go on: {refusal}")
        await director.call_off()
        now = self._venue.clock.now()
        return report(
            self._scenario,
            self._ledger.accounts,
            director.events(),
            began=self._stage.began or now,
            ended=now,
            troubles=[*director.troubles, *troubles],
        )
