"""The endpoint of the stream: records as server-sent events, resumable by number."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Annotated

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Send

from forewarn.api import request_models
from forewarn.api.authentication import Authenticator, credentials_of
from forewarn.api.inputs import HeaderInput
from forewarn.api.request_fields import LARGEST, MACHINE, PROJECT, one_of, whole_in_query
from forewarn.api.request_models import Query, nullable, request_model
from forewarn.api.routing import ApiRouter
from forewarn.api.services import ApiSettings, CallerRead, Service, Services
from forewarn.control.all_use_cases import CallerReads
from forewarn.control.followed_records import FollowedRecords
from forewarn.core.access import Right
from forewarn.core.basic_types import Kind, MachineName, ProjectName
from forewarn.core.errors import Conflict, Unauthenticated, Unavailable
from forewarn.core.filters import Following, RecordFilter
from forewarn.signals import Signal, waking
from forewarn.wire import sse
from forewarn.wire.fields import several
from forewarn.wire.invalid_field import within_field

log = logging.getLogger(__name__)

router = ApiRouter("history")

PAGE = 200

LastEventId = Annotated[
    str | None, HeaderInput("Resume after this record: the `id` of the last received event.")
]
NUMBER = whole_in_query(minimum=0, maximum=LARGEST)


@request_model
class StreamQuery(Query):
    """A filter of the stream, and its start."""

    project: ProjectName | None = nullable(PROJECT, "Only records about this project.")
    machine: MachineName | None = nullable(MACHINE, "Only records about this machine.")
    kind: tuple[Kind, ...] = request_models.field(
        several(one_of(Kind)),
        "Only records of this kind. Repeat the parameter for several kinds.",
        default=(),
    )
    last_event_id: int | None = nullable(NUMBER, "The same as the header, for clients that cannot send it.")
    since: int | None = nullable(
        NUMBER, "Start after this record. 0: the first record. Default: only new records."
    )


class EventStream(StreamingResponse):
    """A stream of server-sent events. It ends when the client stops reading."""

    media_type = "text/event-stream"

    def __init__(self, blocks: AsyncGenerator[bytes, None], *, patience: float) -> None:
        # Proxies must neither cache nor buffer the stream.
        super().__init__(blocks, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._blocks = blocks
        self._patience = patience

    async def stream_response(self, send: Send) -> None:
        """Send events until the stream ends or the client stops reading."""

        async def bounded(message: Message) -> None:
            async with asyncio.timeout(self._patience):
                await send(message)

        try:
            async with aclosing(self._blocks):
                await super().stream_response(bounded)
        except TimeoutError:
            log.warning("closed a stream: its client read nothing for %g s", self._patience)


@router.call("GET /v1/stream", "Follow the history", right=Right.SEE, errors=(409,))
async def follow_stream(
    request: Request,
    query: StreamQuery,
    service: Service,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Send each new record as a server-sent event.

    The `id` of an event is the record's number, and its type is the record's kind. After a disconnection,
    send the last `id` to resume. If some records are no longer stored, the first event is `records-missing`.
    """
    if service.reads.records.closed:
        raise Unavailable("the server stops")
    records = await service.read(lambda reads: _records(reads, query))
    wanted = RecordFilter(machine=query.machine, kinds=frozenset(kind.value for kind in query.kind))
    number = await _start(query, last_event_id, service)
    settings: ApiSettings = request.app.state.settings
    reader = _Reader(
        records=records,
        wanted=wanted,
        read=service.read,
        heartbeat=settings.heartbeat,
        is_valid=_credentials_check(request),
        cut_off=request.app.state.authenticator.cut_off,
    )
    return EventStream(reader.events(number), patience=settings.patience)


def _records(reads: CallerReads, query: StreamQuery) -> FollowedRecords:
    mine = reads.narrowed(query.project)
    if query.machine is not None:
        mine.views.check_machine(query.machine)
    return mine.records


def _credentials_check(request: Request) -> Callable[[], Awaitable[bool]]:
    """Return a check whether the credentials of a stream are still valid."""
    authenticator: Authenticator = request.app.state.authenticator
    shown = credentials_of(request.scope)

    async def is_valid() -> bool:
        try:
            await authenticator.identify(shown)
        except Unauthenticated:
            return False
        return True

    return is_valid


async def _start(query: StreamQuery, last_event_id: str | None, service: Services) -> int:
    """Return the number after which the stream starts."""
    newest = await service.read(lambda reads: reads.records.newest())
    with within_field("Last-Event-ID"):
        given = NUMBER(last_event_id) if last_event_id else query.last_event_id
    number = query.since if given is None else given
    if number is None:
        return newest
    if number > newest:
        # The number comes from another store, or from before a backup was restored.
        raise Conflict(f"record {number} does not exist, the newest is {newest}: start with ?since={newest}")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads the records after a number for one stream, whenever it is woken."""

    records: FollowedRecords
    wanted: RecordFilter
    read: CallerRead
    heartbeat: float
    is_valid: Callable[[], Awaitable[bool]]
    cut_off: Signal
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def events(self, number: int) -> AsyncGenerator[bytes, None]:
        """Yield blocks to send until the server stops."""
        wake = waking(self.woken)
        with self.records.listening(wake), self.cut_off.listening(wake):
            yield sse.opening(number)
            # A client that starts at the first record has missed none.
            up_to = await self.read(lambda _: self.records.missing(number)) if number else None
            if up_to is not None:
                yield sse.missing(number, up_to)
            # The client reconnects, and then gets the error.
            with suppress(Unavailable):
                async with aclosing(self._follow(number)) as blocks:
                    async for block in blocks:
                        yield block

    async def _follow(self, number: int) -> AsyncGenerator[bytes, None]:
        while not self.records.closed:
            self.woken.clear()
            found = await self._after(number)
            number = found.number
            # Credentials can become invalid while the stream is open.
            if not await self.is_valid():
                return
            if found.records:
                yield b"".join(map(sse.event, found.records))
            if not found.more and not await self._woke():
                yield sse.heartbeat(number)

    async def _after(self, number: int) -> Following:
        known = self.records.recent(number, self.wanted)
        if known is not None:
            return known
        return await self.read(lambda _: self.records.page(number, self.wanted, limit=PAGE))

    async def _woke(self) -> bool:
        """Wait for a wake-up. Return False if it is time for a heartbeat."""
        try:
            async with asyncio.timeout(self.heartbeat):
                await self.woken.wait()
        except TimeoutError:
            return False
        return True
