"""An agent with an endpoint and handlers that the test controls."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from forewarn.agent.agent_log import AgentLog
from forewarn.agent.care.agent_context import AgentContext, OnEndpointTrouble
from forewarn.agent.care.watcher import EventWatcher
from forewarn.agent.handling import Outcome, Ready, Side, Task
from forewarn.agent.journal.entries import Entry
from forewarn.agent.journal.journal_file import Journal
from forewarn.agent.setup.agent_config import AgentSettings, Config
from forewarn.agent.setup.handler import Handler
from forewarn.core.basic_types import EventStatus, EventType, Source
from forewarn.programs.kept_program import KeptPrograms
from forewarn.sdk.documents import Document, Event, UnreadableEvent
from forewarn.sdk.guest_errors import GuestError

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
MACHINE = "web-0"
VM_ID = "3c9f0f4a-0000-4000-8000-000000000001"


def event(id_: str = "A", **more: Any) -> Event:
    """Return an event of this machine alone, 15 minutes ahead."""
    told = {
        "type": EventType.REBOOT,
        "status": EventStatus.SCHEDULED,
        "resources": (MACHINE,),
        "not_before": NOW + timedelta(minutes=15),
        "source": Source.PLATFORM,
    }
    return Event(**{"id": id_, **told, **more})  # type: ignore[arg-type]


def started(id_: str = "A", **more: Any) -> Event:
    return event(id_, status=EventStatus.STARTED, not_before=None, **more)


class Endpoint:
    """Serves the documents that a test sets."""

    def __init__(self) -> None:
        self.approved: list[str] = []
        self.on_approve: Callable[[str], None] = lambda id_: None
        self.now = NOW
        self.fault: GuestError | None = None
        self._documents: asyncio.Queue[Document] = asyncio.Queue()
        self.told: OnEndpointTrouble | None = None

    def show(self, *events: Event, incarnation: int, unreadable: Sequence[UnreadableEvent] = ()) -> None:
        shown = Document(incarnation=incarnation, events=events, unreadable=tuple(unreadable))
        self._documents.put_nowait(shown)

    async def watch(self, *, trouble: OnEndpointTrouble | None = None) -> AsyncIterator[Document]:
        self.told = trouble
        while True:
            yield await self._documents.get()

    async def approve(self, *events: Event | str) -> None:
        if self.fault is not None:
            raise self.fault
        for each in events:
            id_ = each if isinstance(each, str) else each.id
            self.on_approve(id_)
            self.approved.append(id_)

    def server_now(self) -> datetime:
        return self.now

    def seconds_left(self, event: Event) -> float | None:
        return event.seconds_left(self.now)


class Doing:
    """A handler that returns what the test chooses, and records its calls."""

    def __init__(self, answer: Callable[[Task], Outcome] = lambda task: Ready()) -> None:
        self.answer = answer
        self.calls: list[tuple[Side, str, int]] = []
        self.running = 0
        self.most_at_once = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def prepare(self, task: Task) -> Outcome:
        return await self._do(task)

    async def recover(self, task: Task) -> Outcome:
        return await self._do(task)

    async def _do(self, task: Task) -> Outcome:
        self.calls.append((task.side, task.event.id, task.attempt))
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await self.gate.wait()
            return self.answer(task)
        finally:
            self.running -= 1

    def describe(self, side: Side) -> str:
        return f"would {side}"

    def problems(self) -> Sequence[str]:
        return ()


class AgentHarness:
    """A running agent in the event loop of the test."""

    def __init__(self, folder: Path, *handlers: Handler, **settings: Any) -> None:
        self.folder = folder
        # Tests of other subjects treat a missing event as over immediately.
        self.config = Config(agent=AgentSettings(**{"settle": 0.0, **settings}), handlers=handlers)
        self.endpoint = Endpoint()
        self.machine = MACHINE
        self.now = NOW
        self.monotonic = 1000.0
        self.up_seconds: float | None = None
        self.boot: str | None = "boot-1"
        self.said: list[str] = []
        self.warned: list[str] = []  # the problems among these messages
        self.entries: list[Entry] = []
        self.at_a_line: Callable[[], None] = lambda: None  # called before and after each line of the journal
        self._incarnation = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start with the same journal, like a new process."""
        self.journal = Journal(self.folder / "agent.journal", vm_id=VM_ID, warn=self.said.append)
        self.context = AgentContext(
            config=self.config,
            machine=self.machine,
            journal=_RecordedJournal(self.journal, self.entries, lambda: self.at_a_line()),
            endpoint=self.endpoint,
            runs=KeptPrograms(self.folder / "runs"),
            log=_CapturedLog(self.said, self.warned),
            now=lambda: self.now,
            monotonic=lambda: self.monotonic,
            up_seconds=lambda: self.up_seconds,
            boot_id=lambda: self.boot,
        )
        self.watcher = EventWatcher(self.context, self.endpoint)
        self._task = asyncio.create_task(self.watcher.run())

    async def stop(self) -> None:
        """Stop it. It writes nothing more."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.journal.close()

    async def show(
        self,
        *events: Event,
        incarnation: int | None = None,
        unreadable: Sequence[UnreadableEvent] = (),
    ) -> None:
        """Show a document, and let the agent handle it."""
        self._incarnation = self._incarnation + 1 if incarnation is None else incarnation
        self.endpoint.show(*events, incarnation=self._incarnation, unreadable=unreadable)
        await settled()


class _RecordedJournal:
    """A journal that keeps everything ever written to it."""

    def __init__(self, journal: Journal, entries: list[Entry], at_a_line: Callable[[], None]) -> None:
        self._journal = journal
        self._entries = entries
        self._at_a_line = at_a_line

    @property
    def tracked_events(self) -> Any:
        return self._journal.tracked_events

    def write(self, entry: Entry) -> None:
        self._at_a_line()
        self._entries.append(entry)
        self._journal.write(entry)
        self._at_a_line()


class _CapturedLog(AgentLog):
    """Records log messages."""

    def __init__(self, said: list[str], warned: list[str]) -> None:
        super().__init__()
        self._said = said
        self._warned = warned

    def bind(self, **fields: Any) -> AgentLog:
        return self

    def info(self, message: str, **fields: Any) -> None:
        self._said.append(message)

    def warn(self, message: str, **fields: Any) -> None:
        self._said.append(message)
        self._warned.append(message)


async def settled() -> None:
    """Let every task run that can run now. The number of turns far exceeds what any test needs."""
    for _ in range(60):
        await asyncio.sleep(0)
