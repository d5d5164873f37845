"""A machine's own agent, rehearsed: what its config makes of an event, and what a crash half-way changes."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from forewarn.agent.agent_log import redacted
from forewarn.agent.care.attempts import GONE
from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import (
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
from forewarn.agent.journal.tracked_events import replay
from forewarn.agent.setup.agent_config import Config, load
from forewarn.clock import clock_of
from forewarn.control.rehearsals.ledger import Account
from forewarn.rehearsal import killer
from forewarn.rehearsal.rehearse import RehearsalRequest, RehearsalSetup, rehearse
from forewarn.rehearsal.report import GuestEvent, RehearsalReport
from forewarn.rehearsal.scenario import Scenario
from forewarn.rehearsal.scenario_file import with_command


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something that happened, in seconds since the scenario began, by the service's time."""

    at: float
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What became of one event in one machine."""

    machine: str
    type: str
    moments: tuple[Moment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """What came of a rehearsal."""

    killing: bool  # whether an agent was to be killed half-way
    killed: bool  # whether one was
    stories: tuple[Story, ...]
    failures: tuple[str, ...]
    remarks: tuple[str, ...]  # what is to be known when one reads this


class _AgentObserver:
    """Passes on what happens."""

    def __init__(self, note: Callable[[timedelta, str, str], None]) -> None:
        self._note = note

    def opened(
        self, opening: RehearsalSetup, accounts: Mapping[str, Account], elapsed: Callable[[], timedelta]
    ) -> None:
        """Do nothing: the agents know where to poll."""

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Pass it on."""
        self._note(at, who, what)


def rehearse_agent(
    scenario: Scenario, *, config: Path, killed: bool, note: Callable[[timedelta, str, str], None]
) -> AgentReport:
    """Run agents with a config through a scenario, on journals of their own."""
    with tempfile.TemporaryDirectory(prefix="forewarn-agent-") as folder:
        journals = {name: Path(folder) / f"{name}.journal" for name in scenario.expect.machines}
        command = _command(config, Path(folder), speed=clock_of(scenario.clock).speed, killed=killed)
        # Whether it should approve is for its config to say.
        expect = replace(scenario.expect, approved=None, within=None)
        played = with_command(replace(scenario, expect=expect), command)
        report = rehearse(RehearsalRequest(scenario=played), _AgentObserver(note))
        return _reported(report, journals, load(config), speed=clock_of(scenario.clock).speed, killing=killed)


def _command(config: Path, folder: Path, *, speed: float, killed: bool) -> list[str]:
    journal = str(folder / "{machine}.journal")
    agent = [
        *(sys.executable, "-m", "forewarn", "agent", "run", "--config", str(config)),
        *("--endpoint", "{endpoint}", "--machine", "auto", "--journal", journal),
        *("--no-listen", "--speed", f"{speed:g}"),
    ]
    return [sys.executable, "-m", killer.__name__, journal, *agent] if killed else agent


def _reported(
    report: RehearsalReport, journals: Mapping[str, Path], config: Config, *, speed: float, killing: bool
) -> AgentReport:
    stories: list[Story] = []
    crashes = {machine: _crash(journal) for machine, journal in journals.items()}
    failures, remarked = list(report.failures), list[str]()
    for guest in report.guests:
        if guest.machine not in journals:
            continue
        entries = killer.entries_of(journals[guest.machine])
        failures += [f"{guest.machine}: {why}" for why in failures_of(entries, config)]
        crash = crashes[guest.machine]
        for sight in guest.events:
            own = [entry for entry in entries if key(entry.event) == sight.id.upper()]
            remarked += [f"{guest.machine}: {remark}" for remark in remarks(own, sight, speed)]
            if own:
                moments = tuple(sorted(_moments(own, sight, speed, crash), key=lambda each: each.at))
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
    """Return what went wrong, and what a rehearsal leaves behind: its handlers have really run."""
    for entry in entries:
        if isinstance(entry, Ended) and entry.ending is Ending.NEVER and entry.why != GONE:
            undo = _undoing(config, entry.handler) if entry.side is Side.RECOVER else ""
            yield f"{entry.handler} could not {entry.side}: {entry.why}{undo}"
    for tracked in replay(entries).values():
        yield f"it has not come back from the {tracked.event.type}"
        for name in tracked.touched():
            undo = _undoing(config, name)
            if undo and not tracked.recovered(name):
                yield f"{name} has prepared and not recovered{undo}"


def _undoing(config: Config, name: str) -> str:
    """Return how to undo by hand what a handler has prepared; empty where there is nothing to undo."""
    handler = config.handler(name)
    if handler is None:
        return ". Undo it by hand"
    does = handler.does.describe(Side.RECOVER)
    if handler.only_notifies or not does:
        return ""
    return redacted(f". Undo it by hand: its recovery {does}", config.secrets)


def remarks(entries: Sequence[Entry], sight: GuestEvent, speed: float) -> Iterator[str]:
    """Return what makes a rehearsal say less than it seems to: the event came too fast for the agent."""
    if not sight.named or sight.notice_seconds <= 0 or sight.started_seconds == sight.announced_seconds:
        return  # it had no notice to get ready in
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
        told = moment(entry.at, _in_words(entry))
        if isinstance(entry, Approved) and sight.approved_seconds is not None:
            told = replace(told, at=sight.approved_seconds)  # as the service heard it
        # Two clocks, of which one is fast, may tell in another order what came one after the other.
        latest = max(latest, told.at)
        yield replace(told, at=latest)
        if isinstance(entry, Approved) and started is not None:
            started = max(started, latest)
    if started is not None:  # after the approval, which may be of the same moment
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
            return f"over: {entry.why}"
        case Over():
            return "recovered"
