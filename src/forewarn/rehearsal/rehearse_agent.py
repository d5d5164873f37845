"""Rehearsal of a machine's own agent: what its config does with an event, and after a crash."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from forewarn.agent.agent_log import redacted
from forewarn.agent.handling import WORK, Side
from forewarn.agent.journal.entries import (
    GONE,
    Approved,
    Begun,
    Changed,
    Ended,
    Ending,
    Entry,
    Left,
    Over,
    Owed,
    ProgramRunning,
    Restarted,
    RestartExpected,
    TakenUp,
    key,
)
from forewarn.agent.journal.tracked_events import TrackedEvent, replay
from forewarn.agent.setup.agent_config import Config, load
from forewarn.clock import SystemClock, clock_of
from forewarn.core.basic_types import EventType, HostName, MachineName
from forewarn.core.model.declaration import MachineSpec
from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.core.time_formats import format_span_briefly
from forewarn.rehearsal import killer
from forewarn.rehearsal.rehearse import RehearsalRequest, RehearsalSetup, rehearse
from forewarn.rehearsal.report import GuestEvent, RehearsalReport
from forewarn.rehearsal.scenario import CancelStep, Scenario
from forewarn.rehearsal.scenario_file import with_command

# Real seconds. The scenario time comes from answers of the service, which may be delayed.
CLOCKS_AGREE_WITHIN = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something that happened, in seconds of service time since the scenario began."""

    at: float
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The course of one event in one machine."""

    machine: str
    type: str
    moments: tuple[Moment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """The result of a rehearsal."""

    killing: bool  # whether an agent was to be killed half-way
    killed: bool  # whether one was
    stories: tuple[Story, ...]
    failures: tuple[str, ...]
    remarks: tuple[str, ...]  # limits of this result


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioTime:
    """A pair of times: of this computer, and of the scenario, which may run faster."""

    now: datetime
    elapsed_seconds: float
    speed: float

    def seconds(self, at: datetime) -> float:
        """Convert a time of this computer to seconds since the scenario began."""
        return self.elapsed_seconds + (at - self.now).total_seconds() * self.speed


class _AgentObserver:
    def __init__(self, note: Callable[[timedelta, str, str], None]) -> None:
        self._note = note
        self.elapsed: Callable[[], timedelta] = timedelta

    def opened(
        self, opening: RehearsalSetup, accounts: Mapping[str, GuestAccount], elapsed: Callable[[], timedelta]
    ) -> None:
        """Keep the clock of the scenario. The agents know where to poll."""
        self.elapsed = elapsed

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Pass it on."""
        self._note(at, who, what)


def rehearse_agent(
    scenario: Scenario, *, config: Path, killed: bool, note: Callable[[timedelta, str, str], None]
) -> AgentReport:
    """Play a scenario with agents that use a config, with temporary journals."""
    with tempfile.TemporaryDirectory(prefix="forewarn-agent-") as folder:
        journals = {name: Path(folder) / f"{name}.journal" for name in scenario.expect.machines}
        speed = clock_of(scenario.clock).speed
        command = _command(config, Path(folder), speed=speed, killed=killed)
        # The config of the agent determines whether it approves.
        expect = replace(scenario.expect, approved=None, within=None)
        played = with_command(with_neighbours(replace(scenario, expect=expect)), command)
        observer = _AgentObserver(note)
        report = rehearse(RehearsalRequest(scenario=played), observer)
        elapsed = observer.elapsed().total_seconds()
        time = ScenarioTime(now=SystemClock().now(), elapsed_seconds=elapsed, speed=speed)
        return _reported(report, journals, load(config), time, killing=killed)


def with_neighbours(scenario: Scenario) -> Scenario:
    """Add a machine that approves nothing to each host whose work is cancelled later.

    Work on a host starts before its NotBefore once all its machines have approved. An agent that approves
    immediately would leave nothing to cancel.
    """
    if not any(isinstance(step.does, CancelStep) for step in scenario.steps):
        return scenario
    hosts = {order.host: None for order in scenario.orders if order.host is not None}
    beside = [
        MachineSpec(name=MachineName(f"beside-{host}"), host=HostName(host), group=None) for host in hosts
    ]
    fleet = replace(scenario.fleet, machines=(*scenario.fleet.machines, *beside))
    return replace(scenario, fleet=fleet)


def _command(config: Path, folder: Path, *, speed: float, killed: bool) -> list[str]:
    journal = str(folder / "{machine}.journal")
    agent = [
        *(sys.executable, "-m", "forewarn", "agent", "run", "--config", str(config)),
        *("--endpoint", "{endpoint}", "--machine", "auto", "--journal", journal),
        *("--no-listen", "--speed", f"{speed:g}"),
    ]
    return [sys.executable, "-m", killer.__name__, journal, *agent] if killed else agent


def _reported(
    report: RehearsalReport,
    journals: Mapping[str, Path],
    config: Config,
    time: ScenarioTime,
    *,
    killing: bool,
) -> AgentReport:
    stories: list[Story] = []
    crashes = {machine: _crash(journal) for machine, journal in journals.items()}
    failures, remarked = list(report.failures), list[str]()
    for guest in report.guests:
        if guest.machine not in journals:
            continue
        entries = killer.entries_of(journals[guest.machine])
        failures += [f"{guest.machine}: {why}" for why in failures_of(entries, config)]
        remarked += [f"{guest.machine}: {remark}" for remark in leftovers(entries, config)]
        crash = crashes[guest.machine]
        for sight in guest.events:
            own = [entry for entry in entries if key(entry.event) == sight.id.upper()]
            failures += [f"{guest.machine}: {why}" for why in early_recoveries(own, sight, time)]
            remarked += [f"{guest.machine}: {remark}" for remark in remarks(own, sight, time.speed)]
            if own:
                moments = tuple(sorted(_moments(own, sight, time.speed, crash), key=lambda each: each.at))
                stories.append(Story(machine=guest.machine, type=sight.type, moments=moments))
    return AgentReport(
        killing=killing,
        killed=any(crashes.values()),
        stories=tuple(stories),
        failures=tuple(failures),
        remarks=tuple(remarked),
    )


def _crash(journal: Path) -> datetime | None:
    mark = killer.mark(journal)
    return datetime.fromisoformat(mark.read_text(encoding="ascii")) if mark.exists() else None


def failures_of(entries: Sequence[Entry], config: Config) -> Iterator[str]:
    """Yield what went wrong, and what the rehearsal leaves behind: its handlers have really run."""
    for entry in entries:
        if isinstance(entry, Ended) and entry.ending is Ending.NEVER and entry.why != GONE:
            undo = _undoing(config, entry.handler) if entry.side is Side.RECOVER else ""
            act = entry.side if entry.side in WORK else "notify"
            yield f"{entry.handler} could not {act}: {entry.why}{undo}"
    for tracked in replay(entries).values():
        if tracked.event.type != EventType.TERMINATE:
            yield f"it has not come back from the {tracked.event.type}"
            yield from _not_undone(tracked, config)


def leftovers(entries: Sequence[Entry], config: Config) -> Iterator[str]:
    """Yield what the deletion of a machine makes unnecessary, but should be undone on this computer."""
    for tracked in replay(entries).values():
        if tracked.event.type == EventType.TERMINATE:
            yield from _not_undone(tracked, config)


def _not_undone(tracked: TrackedEvent, config: Config) -> Iterator[str]:
    for name in tracked.touched():
        undo = _undoing(config, name)
        if undo and not tracked.recovered(name):
            yield f"{name} has prepared and not recovered{undo}"


def early_recoveries(entries: Sequence[Entry], sight: GuestEvent, time: ScenarioTime) -> Iterator[str]:
    """Yield a failure if an agent recovered before the event was over."""
    over = [entry for entry in entries if isinstance(entry, Left)]
    if not over:
        return
    at = time.seconds(over[0].at)
    # If the agent saw the event again, it certainly went on. The clocks are less exact.
    again = len([entry for entry in entries if isinstance(entry, TakenUp)]) > 1
    ended = sight.ended_seconds
    if again or (ended is not None and at + CLOCKS_AGREE_WITHIN * time.speed < ended):
        until = "" if ended is None else f" until {format_span_briefly(ended)}"
        yield (
            f"it recovered from the {sight.type} at {format_span_briefly(max(0.0, at))}, but the"
            f" event went on{until}: with a longer `settle` it tolerates events that are briefly missing"
        )


def _undoing(config: Config, name: str) -> str:
    """Return how to undo the preparation of a handler by hand; empty if there is nothing to undo."""
    handler = config.handler(name)
    if handler is None:
        return ". Undo it by hand"
    does = handler.does.describe(Side.RECOVER)
    if handler.only_notifies or not does:
        return ""
    return redacted(f". Undo it by hand: its recovery {does}", config.secrets)


def remarks(entries: Sequence[Entry], sight: GuestEvent, speed: float) -> Iterator[str]:
    """Yield a remark if the event came too fast for the agent, so that the rehearsal proves little."""
    if not sight.named or sight.notice_seconds <= 0 or sight.started_seconds == sight.announced_seconds:
        return  # there was no notice
    seen = [entry.event for entry in entries if isinstance(entry, TakenUp)]
    if not seen or seen[0].started:
        how = "was seen only after it had started" if seen else "was over before it was seen"
        yield (
            f"the {sight.type} {how}. Its notice of {sight.notice_seconds:.0f} s passes in"
            f" {sight.notice_seconds / speed:.1f} s at {speed:g} times the speed:"
            " a lower --speed shows whether it is enough"
        )


def _moments(
    entries: Sequence[Entry], sight: GuestEvent, speed: float, crash: datetime | None
) -> Iterator[Moment]:
    (seen,) = [entry.at for entry in entries if isinstance(entry, TakenUp)][:1]
    seen_at = sight.announced_seconds if sight.seen_seconds is None else sight.seen_seconds

    def moment(at: datetime, what: str) -> Moment:
        return Moment(at=seen_at + (at - seen).total_seconds() * speed, what=what)

    yield Moment(at=sight.announced_seconds, what="the event is announced")
    if crash is not None:
        yield moment(crash, "the agent is killed, and started again")
    latest, started = sight.announced_seconds, sight.started_seconds
    for entry in entries:
        if isinstance(entry, Changed | ProgramRunning | Owed | RestartExpected):
            continue
        shown = moment(entry.at, _in_words(entry))
        if isinstance(entry, Approved) and sight.approved_seconds is not None:
            shown = replace(shown, at=sight.approved_seconds)  # the time of the service
        # Times of two clocks may come in the wrong order.
        latest = max(latest, shown.at)
        yield replace(shown, at=latest)
        if isinstance(entry, Approved) and started is not None:
            started = max(started, latest)
    if started is not None:  # after an approval at the same time
        yield Moment(at=started, what="the event starts")


def _in_words(entry: TakenUp | Begun | Ended | Approved | Restarted | Left | Over) -> str:
    match entry:
        case TakenUp():
            return "seen"
        case Begun():
            again = f" (attempt {entry.attempt})" if entry.attempt > 1 else ""
            return f"{entry.handler}: {entry.side} begins{again}"
        case Ended():
            why = f": {entry.why}" if entry.why else ""
            return f"{entry.handler}: {entry.side} {entry.ending}{why}"
        case Approved():
            return "approved"
        case Restarted():
            return "the machine has restarted"
        case Left():
            return f"the event has left the document: {entry.why}"
        case Over():
            return "recovered"
