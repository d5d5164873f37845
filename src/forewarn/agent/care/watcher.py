"""The agent's main loop: compare each document with the journal, and work on each event in its own task."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from forewarn.agent.care import comparison
from forewarn.agent.care.agent_context import REFUSED_SECONDS, AgentContext, EventEndpoint, OnEndpointTrouble
from forewarn.agent.care.attempts import file_stem
from forewarn.agent.care.comparison import Doubt, SeenDocuments, boot_entry
from forewarn.agent.care.event_care import EventCare
from forewarn.agent.journal.entries import Changed, Left, Restarted, TakenUp, key
from forewarn.agent.setup.agent_config import Config
from forewarn.core.basic_types import EventType
from forewarn.sdk.documents import Document, Event, UnreadableEvent
from forewarn.sdk.guest_errors import EndpointUnavailable, GuestError


class WatchedEndpoint(EventEndpoint, Protocol):
    """The metadata endpoint."""

    def watch(self, *, trouble: OnEndpointTrouble | None = ...) -> AsyncIterator[Document]:
        """Yield documents as they change."""
        ...


class EventWatcher:
    """Watches documents and starts the work on each event that names this machine."""

    def __init__(self, context: AgentContext, endpoint: WatchedEndpoint) -> None:
        self._context = context
        self._endpoint = endpoint
        self._cares: dict[str, EventCare] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._document: Document | None = None
        self._unreadable: Collection[UnreadableEvent] = ()  # of the last document
        self._seen: SeenDocuments | None = None
        self._missed: set[str] = set()  # events that the current document may omit wrongly
        self._again: asyncio.TimerHandle | None = None
        self._fault: str | None = None  # the error of the last comparison
        self.trouble: str | None = None  # why the endpoint does not answer
        self.trouble_since: datetime | None = None

    @property
    def machine(self) -> str:
        """The name of this machine."""
        return self._context.machine

    @property
    def informed(self) -> bool:
        """Whether the agent has received a document."""
        return self._document is not None

    def not_approved(self, id_: str) -> str | None:
        """Return why an event is not approved, once decided."""
        care = self._cares.get(id_)
        return None if care is None else care.not_approved

    async def run(self) -> None:
        """Watch until cancelled; programs of handlers go on."""
        try:
            while True:
                try:
                    async for document in self._endpoint.watch(trouble=self._troubled):
                        self._see(document)
                except GuestError as error:
                    self._troubled(error)
                await asyncio.sleep(REFUSED_SECONDS)
        finally:
            await self.stop()

    def resume(self) -> None:
        """Resume the work that needs no document: recovery, and waiting for running programs."""
        for id_ in self._in_order():
            self._care_for(id_, listed=False)

    def reload(self, config: Config) -> None:
        """Use a new config."""
        self._context.config = config
        for care in self._cares.values():
            care.changed()

    def _see(self, document: Document) -> None:
        if self.trouble is not None:
            self._troubled(None)
        self._context.metrics.count("documents")
        self._note_unreadable(document)
        self._document = document
        self._seen = comparison.seen(
            self._seen,
            document,
            self._context.journal.tracked_events,
            machine=self._context.machine,
            now=self._context.monotonic(),
        )
        self._compare()

    def _note_unreadable(self, document: Document) -> None:
        """Log and count each unreadable event once."""
        for each in document.unreadable:
            if each not in self._unreadable:
                self._context.metrics.count("unreadable", "event")
                self._context.log.warn(
                    f"skipped an unreadable event: {each.why}",
                    event=each.id or None,
                )
        self._unreadable = document.unreadable

    def _note_status(self, event: Event) -> None:
        """Log and count an unknown status."""
        if event.status_is_known:
            return
        self._context.metrics.count("unreadable", "status")
        self._context.log.warn(
            f"the status {str(event.status)!r} is unknown: handlers prepare at once, the agent does not"
            " approve the event, and handlers recover when the event has left the document",
            event=key(event),
            type=str(event.type),
        )

    def _compare(self) -> None:
        """Act on the current document; an error in the agent must not end the watch."""
        try:
            self._follow()
        except Exception as error:  # noqa: BLE001 - the next document may work
            fault = f"{type(error).__name__}: {error}"
            if fault != self._fault:
                self._context.log.warn(f"cannot act on a document, will try again: {fault}")
            self._fault = fault
            self._look_again(REFUSED_SECONDS)
        else:
            self._fault = None

    def _follow(self) -> None:
        """Act on the current document; idempotent."""
        if self._document is None or self._seen is None or self._context.leaving:
            return
        difference = comparison.compare(
            self._context.journal.tracked_events,
            self._document,
            machine=self._context.machine,
            seen=self._seen,
            doubt=self._doubt(),
            now=self._context.monotonic(),
        )
        for event in difference.take_up:
            self._take_up(event)
        for event in self._document.naming(self._context.machine):
            self._note_boot(event)
        for event in difference.change:
            self._change(event)
        for id_, why in difference.leave.items():
            self._leave(id_, why)
        for id_ in self._in_order():
            self._care_for(id_, listed=id_ not in {*difference.doubted, *difference.unread})
        self._miss(difference.doubted)
        for id_ in difference.unread:
            self._cares[id_].missing()
        self._look_again(difference.look_again_in)

    def _doubt(self) -> Doubt:
        up_seconds = self._context.up_seconds()
        return Doubt(
            settle=self._context.config.agent.settle / self._context.speed,
            booted=None if up_seconds is None else self._context.now() - timedelta(seconds=up_seconds),
            answers=self.trouble is None,
        )

    def _take_up(self, event: Event) -> None:
        self._context.journal.write(TakenUp(event=event, at=self._context.now()))
        # The endpoint chooses the type, and the number of label values must be limited.
        self._context.metrics.count("events", str(event.type) if event.type in set(EventType) else "other")
        self._context.log.info(
            f"{event.type} is {event.status}",
            event=key(event),
            type=str(event.type),
            source=str(event.source),
            resources=",".join(event.resources),
            seconds_left=_whole(self._endpoint.seconds_left(event)),
            description=event.description or None,
        )
        self._note_status(event)

    def _note_boot(self, event: Event) -> None:
        """Record whether the restart of a listed event is still to come."""
        tracked = self._context.journal.tracked_events.get(key(event))
        if tracked is None or tracked.left is not None:
            return
        entry = boot_entry(
            tracked,
            event,
            boot=self._context.boot_id(),
            up_seconds=self._context.up_seconds(),
            server_now=self._endpoint.server_now,
            now=self._context.now(),
        )
        if entry is None:
            return
        self._context.journal.write(entry)
        if isinstance(entry, Restarted):
            self._context.log.info(
                f"the machine has restarted for the {event.type}", event=key(event), type=str(event.type)
            )
        if care := self._cares.get(key(event)):
            care.changed()

    def _change(self, event: Event) -> None:
        before = self._context.tracked(key(event)).event
        self._context.journal.write(Changed(event=event))
        if before.status != event.status:
            self._context.log.info(f"{event.type} is {event.status}", event=key(event), type=str(event.type))
            self._note_status(event)
        elif before.not_before != event.not_before:
            left = _whole(self._endpoint.seconds_left(event))
            self._context.log.info(
                f"{event.type} has moved", event=key(event), type=str(event.type), seconds_left=left
            )
        if care := self._cares.get(key(event)):
            care.changed()

    def _leave(self, id_: str, why: str) -> None:
        self._context.journal.write(Left(event=id_, at=self._context.now(), why=why))
        event = self._context.tracked(id_).event
        self._context.log.info(f"{event.type} has left: {why}", event=id_, type=str(event.type))
        if care := self._cares.get(id_):
            care.left()

    def _miss(self, doubted: Mapping[str, float]) -> None:
        """Begin nothing more for events that may be over, and log each once."""
        for id_, seconds in doubted.items():
            self._cares[id_].missing()
            if id_ not in self._missed:
                event = self._context.tracked(id_).event
                self._context.log.info(
                    f"{event.type} is missing from the document: it counts as over if the next document "
                    f"omits it too, or in {seconds:.0f} s",
                    event=id_,
                    type=str(event.type),
                )
        self._missed = set(doubted)

    def _in_order(self) -> list[str]:
        """Return the events by urgency, first those with handlers that an earlier agent has begun."""
        tracked_events = self._context.journal.tracked_events
        return sorted(
            tracked_events,
            key=lambda id_: (not tracked_events[id_].at_work(), self._context.urgency(id_)),
        )

    def _care_for(self, id_: str, *, listed: bool = True) -> None:
        if known := self._cares.get(id_):
            if listed:
                known.listed()
            return
        care = self._cares[id_] = EventCare(id_, self._context, listed=listed)
        task = self._tasks[id_] = asyncio.create_task(care.run(), name=f"event {id_}")
        task.add_done_callback(lambda done: self._done(id_, done))

    def _done(self, id_: str, task: "asyncio.Task[None]") -> None:
        del self._cares[id_], self._tasks[id_]
        if task.cancelled():
            return
        if error := task.exception():
            # An error in the agent. The next comparison resumes the work from the journal.
            self._context.log.warn(
                f"the work on an event failed, will resume: {type(error).__name__}: {error}", event=id_
            )
            self._look_again(REFUSED_SECONDS)
            return
        if not self._context.dry:
            self._context.runs.forget(lambda name: name.startswith(file_stem(id_)))
        self._compare()

    def _look_again(self, seconds: float | None) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if seconds is not None:
            self._again = asyncio.get_running_loop().call_later(seconds, self._compare)

    def _troubled(self, error: GuestError | None) -> None:
        """Log once that the endpoint has stopped answering, and once that it answers again."""
        if error is None:
            self._context.log.info("the endpoint answers again")
            self.trouble = self.trouble_since = None
            return
        if self.trouble is None:
            self.trouble, self.trouble_since = str(error), self._context.now()
            self._context.metrics.count("troubles")
            passing = (
                "; preparations stay in effect meanwhile" if isinstance(error, EndpointUnavailable) else ""
            )
            self._context.log.warn(f"the endpoint gives no document: {error}{passing}")

    async def stop(self) -> None:
        """Stop the work on all events; programs go on."""
        self._context.leaving = True
        self._look_again(None)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds)
