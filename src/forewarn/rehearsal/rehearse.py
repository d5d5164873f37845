"""A whole rehearsal: target, endpoints, guests, scenario and report."""

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
from forewarn.server.preparation import new_id
from forewarn.wire.answers.service_answers import ClockAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalSetup:
    """The start of a rehearsal, for an observer."""

    scenario: Scenario  # with the names of the real machines
    clock: str  # as text
    places: Mapping[str, str]  # where the guest of each machine polls, as text
    endpoints: Mapping[str, str] = field(default_factory=dict)  # the URLs of a private service
    project: str | None = None  # of a running server
    unanswered: timedelta | None = None  # how long it really takes without approvals


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalRequest:
    """The parameters of a rehearsal."""

    scenario: Scenario
    wait: timedelta = PATIENCE  # real time, for the first poll of every guest
    # These apply to a running server only.
    project: str | None = None
    substitutes: Mapping[str, str] = field(default_factory=dict)  # by the scenario's machine
    paced: bool = False  # the caller wants the pace of the scenario, which needs a manual clock


class Observer(Protocol):
    """Shows a running rehearsal."""

    def opened(
        self, opening: RehearsalSetup, accounts: Mapping[str, GuestAccount], elapsed: Callable[[], timedelta]
    ) -> None:
        """Show where the guests should poll. The accounts and the time keep changing."""
        ...

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Show what has happened."""
        ...


def rehearse(request: RehearsalRequest, observer: Observer) -> RehearsalReport:
    """Play a scenario in a private service.

    SIGINT and SIGTERM end it with a report of what has happened so far.
    """
    return _run(_in_private(request, observer))


def rehearse_on(
    server: AsyncOperatorClient, request: RehearsalRequest, observer: Observer
) -> RehearsalReport:
    """Play a scenario on a running server, in a project for rehearsals."""
    return _run(_on_running(server, request, observer))


def _run(rehearsal: Coroutine[None, None, RehearsalReport]) -> RehearsalReport:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_ending_on_request(rehearsal))


async def _ending_on_request(rehearsal: Coroutine[None, None, RehearsalReport]) -> RehearsalReport:
    task = asyncio.current_task()
    if task is not None:
        # Only once: `timeout` sends the signal twice, and the second one must not interrupt the report.
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
            raise Conflict(f"--speed needs a manual clock, and the server's clock is {clock.kind}")
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
        """Set the faults that are on from the first poll."""
        await self._target.set_faults(self._scenario.faults(None))

    def open(self, opening: RehearsalSetup) -> None:
        """Show where the guests poll."""
        self._places = opening.places
        self._observer.opened(opening, self._target.ledger.accounts, self._clock.elapsed)

    def _guest_did(self, machine: str, what: str, /, *, at: datetime | None = None) -> None:
        rank = {SEES: Rank.SEEN, APPROVES: Rank.APPROVED}.get(what.partition(" ")[0], Rank.OTHER)
        self.timeline.note(machine, what, at=at, rank=rank)

    def program_ended(self, machine: str, code: int) -> None:
        """Note that a guest program has ended."""
        self.timeline.note(machine, f"its program has ended with {code}")

    async def run(self) -> RehearsalReport:
        """Play the scenario, and return the report."""
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
            # Ctrl-C: report what has happened so far.
            interrupted = True
            troubles.append("it was interrupted")
        except ForewarnError as refusal:
            troubles.append(f"it could not go on: {refusal}")
        await runner.cancel_orders()
        with contextlib.suppress(ForewarnError):
            await runner.catch_up()  # get the last actions of the guests
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
