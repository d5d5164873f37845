"""A whole rehearsal: a target, endpoints, guests, the scenario, and the report."""

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import uvloop

from forewarn.client.async_calls import AsyncOperatorClient
from forewarn.clock import clock_of, monotonic
from forewarn.core.errors import Conflict, ForewarnError
from forewarn.core.orders.recommendations import recommends
from forewarn.core.rehearsal_ledger import APPROVES, SEES, GuestAccount
from forewarn.rehearsal.guest_programs import GuestProgram
from forewarn.rehearsal.matching import match_machines
from forewarn.rehearsal.private_service import private_service
from forewarn.rehearsal.probes import ProbeWatch
from forewarn.rehearsal.report import RehearsalReport, report, with_probes
from forewarn.rehearsal.runner import PATIENCE, ScenarioRunner
from forewarn.rehearsal.scenario import Scenario, unanswered
from forewarn.rehearsal.target import MANUAL, OperatorApi, ServerClock, Target
from forewarn.rehearsal.timeline import Rank, ScenarioClock, Timeline
from forewarn.sdk.transport.endpoint_urls import EVENTS_PATH
from forewarn.server.wiring import new_id
from forewarn.wire.answers.service_answers import ClockAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalSetup:
    """What an observer shows before a scenario begins."""

    scenario: Scenario  # with the names of the machines it is played on
    clock: str  # how time goes, in words
    places: Mapping[str, str]  # where the guest of each machine polls, in words
    endpoints: Mapping[str, str] = field(default_factory=dict)  # the URLs of a private service
    project: str | None = None  # of a running server
    unanswered: timedelta | None = None  # how long it really takes there without approvals


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalRequest:
    """How a scenario is to be rehearsed."""

    scenario: Scenario
    wait: timedelta = PATIENCE  # real time, for every guest to poll for the first time
    # The rest is for a running server.
    project: str | None = None
    substitutes: Mapping[str, str] = field(default_factory=dict)  # by the scenario's machine
    paced: bool = False  # whether the scenario's pace was asked for, which only a manual clock can keep to


class Observer(Protocol):
    """Shows a rehearsal while it runs."""

    def opened(
        self, opening: RehearsalSetup, accounts: Mapping[str, GuestAccount], elapsed: Callable[[], timedelta]
    ) -> None:
        """Take where the guests should poll; the accounts and the time go on changing."""
        ...

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Take what has happened."""
        ...


def rehearse(request: RehearsalRequest, observer: Observer) -> RehearsalReport:
    """Run a scenario in a private service; returns when it is over.

    SIGINT and SIGTERM end it with what there is to report.
    """
    return _run(_in_private(request, observer))


def rehearse_on(
    server: AsyncOperatorClient, request: RehearsalRequest, observer: Observer
) -> RehearsalReport:
    """Run a scenario on a running server, in a project of its own; ends as one in a private service."""
    return _run(_on_running(server, request, observer))


def _run(rehearsal: Coroutine[None, None, RehearsalReport]) -> RehearsalReport:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_ending_on_request(rehearsal))


async def _ending_on_request(rehearsal: Coroutine[None, None, RehearsalReport]) -> RehearsalReport:
    task = asyncio.current_task()
    if task is not None:
        # Once: `timeout` sends it twice, and the second must not end the report of the first.
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGTERM, lambda: task.cancelling() or task.cancel()
        )
    return await rehearsal


async def _in_private(request: RehearsalRequest, observer: Observer) -> RehearsalReport:
    scenario = request.scenario
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="forewarn-rehearsal-")))
        service = await stack.enter_async_context(
            private_service(
                folder,
                fleet=scenario.fleet,
                clock=scenario.clock,
                preview=any(recommends(order.action) for order in scenario.orders),
            )
        )
        api = OperatorApi(service.client)
        clock = ServerClock(await api.call("GET", "/v1/clock", ClockAnswer))
        rehearsal = _Rehearsal(scenario, _target(api, scenario, None, clock), observer, wait=request.wait)
        await rehearsal.set_up()
        endpoints = {
            str(machine.name): await service.open_endpoint(machine.name, port=machine.port or 0)
            for machine in scenario.fleet.machines
        }
        places = {name: f"{url}{EVENTS_PATH}" for name, url in endpoints.items()}
        rehearsal.open(
            RehearsalSetup(scenario=scenario, clock=scenario.clock, places=places, endpoints=endpoints)
        )
        for number, guest in enumerate(scenario.guests):
            program = GuestProgram(
                guest,
                endpoints[guest.machine],
                note=rehearsal.timeline.note,
                ended=rehearsal.program_ended,
                socket_=folder / f"guest-{number}.socket",
            )
            await program.start()
            stack.push_async_callback(program.stop)
            rehearsal.programs[guest.machine] = program
        return await rehearsal.run()


async def _on_running(
    client: AsyncOperatorClient, request: RehearsalRequest, observer: Observer
) -> RehearsalReport:
    async with contextlib.aclosing(client):
        api = OperatorApi(client)
        clock = ServerClock(await api.call("GET", "/v1/clock", ClockAnswer))
        if request.paced and clock.kind != MANUAL:
            raise Conflict(f"the server's clock is {clock.kind}, and keeps its own time: leave --speed out")
        matched = await match_machines(
            api, request.scenario, project=request.project, substitutes=request.substitutes
        )
        scenario, pace = matched.scenario, clock_of(request.scenario.clock).speed
        rehearsal = _Rehearsal(
            scenario, _target(api, scenario, matched.project, clock), observer, wait=request.wait
        )
        await rehearsal.set_up()
        rehearsal.open(
            RehearsalSetup(
                scenario=scenario,
                clock=f"{clock.kind}, turned at {scenario.clock}" if clock.kind == MANUAL else clock.kind,
                places=matched.places,
                project=matched.project,
                unanswered=unanswered(scenario) / (clock.speed or pace),
            )
        )
        return await rehearsal.run()


def _target(api: OperatorApi, scenario: Scenario, project: str | None, clock: ServerClock) -> Target:
    pace = clock_of(scenario.clock).speed
    return Target(api, scenario=scenario, project=project, clock=clock, pace=pace, id_=new_id())


class _Rehearsal:
    """A scenario, its target and its observer, put together."""

    def __init__(self, scenario: Scenario, target: Target, observer: Observer, *, wait: timedelta) -> None:
        self._scenario = scenario
        self._target = target
        self._observer = observer
        self._wait = wait
        self._clock = ScenarioClock(target.clock.now)
        self._places: Mapping[str, str] = {}
        self._began = monotonic()
        self.programs: dict[str, GuestProgram] = {}
        self.timeline = Timeline(self._clock, observer.noted)
        target.ledger.set_listener(self._guest_did)

    async def set_up(self) -> None:
        """Let guests meet the faults that are on from the first poll."""
        await self._target.set_faults(self._scenario.faults(None))

    def open(self, opening: RehearsalSetup) -> None:
        """Show where the guests poll."""
        self._places = opening.places
        self._observer.opened(opening, self._target.ledger.accounts, self._clock.elapsed)

    def _guest_did(self, machine: str, what: str, /, *, at: datetime | None = None) -> None:
        rank = {SEES: Rank.SEEN, APPROVES: Rank.APPROVED}.get(what.partition(" ")[0], Rank.OTHER)
        self.timeline.note(machine, what, at=at, rank=rank)

    def program_ended(self, machine: str, code: int) -> None:
        """Note that a program that was run as a guest has ended."""
        self.timeline.note(machine, f"its program has ended with {code}")

    async def run(self) -> RehearsalReport:
        """Run the scenario, and return how it went."""
        probes = [ProbeWatch(each, self.timeline, self._clock.elapsed) for each in self._scenario.probes]
        looking = [asyncio.create_task(probe.run()) for probe in probes]
        try:
            return await self._played(probes)
        finally:
            for task in looking:
                task.cancel()
            await asyncio.gather(*looking, return_exceptions=True)
            await self._target.leave()

    async def _played(self, probes: Sequence[ProbeWatch]) -> RehearsalReport:
        runner = ScenarioRunner(
            self._scenario,
            self._target,
            clock=self._clock,
            programs=self.programs,
            timeline=self.timeline,
            probes=probes,
        )
        troubles, interrupted = [], False
        try:
            await runner.run(places=self._places, wait=self._wait)
        except asyncio.CancelledError:
            # Ctrl-C: what there is so far is worth a report.
            interrupted = True
            troubles.append("it was interrupted")
        except ForewarnError as refusal:
            troubles.append(f"it could not go on: {refusal}")
        await runner.cancel_orders()
        with contextlib.suppress(ForewarnError):
            await runner.catch_up()  # what guests did in the end
        self.timeline.show()
        now = self._target.clock.now()
        guests = report(
            self._scenario,
            self._target.ledger.accounts,
            runner.events(),
            began=self._clock.began or now,
            ended=now,
            troubles=[*runner.troubles, *troubles],
        )
        probed = [probe.report() for probe in probes]
        took = monotonic() - self._began
        return with_probes(replace(guests, interrupted=interrupted), probed, took_seconds=took)
