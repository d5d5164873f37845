"""The stream: every record as it happens, and everything since if the reader was away."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Annotated

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Send

from forewarn.api.authentication import Authenticator, credentials_of
from forewarn.api.inputs import InHeader
from forewarn.api.request_fields import LARGEST, MACHINE, PROJECT, one_of, several, whole_in_query
from forewarn.api.request_parts import Query, declared, given, maybe
from forewarn.api.routing import ApiRouter
from forewarn.api.services import ApiSettings, Read, Service, Services
from forewarn.control.all_use_cases import CallerReads
from forewarn.control.followed_records import FollowedRecords
from forewarn.core.access import Right
from forewarn.core.basic_types import Kind, MachineName, ProjectName
from forewarn.core.errors import Unauthenticated, Conflict, Invalid, Unavailable
from forewarn.core.filters import Following, RecordFilter
from forewarn.signals import Signal, waking
from forewarn.wire import sse

log = logging.getLogger(__name__)

router = ApiRouter("history")

PAGE = 200

LastEventId = Annotated[str | None, InHeader("The `id` of the last event that was seen.")]
NUMBER = whole_in_query(minimum=0, maximum=LARGEST)


@declared
class StreamQuery(Query):
    """Which records, and from where on."""

    project: ProjectName | None = maybe(PROJECT, "Only of this project.")
    machine: MachineName | None = maybe(MACHINE, "Only of this machine.")
    kind: tuple[Kind, ...] = given(several(one_of(Kind)), "Only of these kinds.", default=())
    last_event_id: int | None = maybe(NUMBER, "As the header, for readers that cannot send it.")
    since: int | None = maybe(NUMBER, "Only after this record's number; 0 for all.")


class EventStream(StreamingResponse):
    """Server-sent events, for a reader that takes them."""

    media_type = "text/event-stream"

    def __init__(self, blocks: AsyncGenerator[bytes, None], *, patience: float) -> None:
        # No proxy on the way may keep anything, or wait for more.
        super().__init__(blocks, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._blocks = blocks
        self._patience = patience

    async def stream_response(self, send: Send) -> None:
        """Send until the stream ends, or the reader takes nothing any more."""

        async def bounded(message: Message) -> None:
            async with asyncio.timeout(self._patience):
                await send(message)

        try:
            async with aclosing(self._blocks):
                await super().stream_response(bounded)
        except TimeoutError:
            log.warning("a reader of the stream took nothing for %g s and was cut off", self._patience)


@router.call("GET /v1/stream", "Follow what happens", right=Right.SEE, errors=(404, 409))
async def follow_stream(
    request: Request,
    query: StreamQuery,
    service: Service,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Send every record as a server-sent event, from now on or from after a number."""
    if service.reads.records.closed:
        raise Unavailable("stopping")
    records = await service.read(lambda reads: _records(reads, query))
    wanted = RecordFilter(machine=query.machine, kinds=frozenset(kind.value for kind in query.kind))
    number = await _start(query, last_event_id, service)
    settings: ApiSettings = request.app.state.settings
    reader = _Reader(
        records,
        wanted,
        read=service.read,
        heartbeat=settings.heartbeat,
        is_welcome=_asker(request),
        cut_off=request.app.state.authenticator.cut_off,
    )
    return EventStream(reader.events(number), patience=settings.patience)


def _records(reads: CallerReads, query: StreamQuery) -> FollowedRecords:
    mine = reads.narrowed(query.project)
    if query.machine is not None:
        mine.views.check_machine(query.machine)
    return mine.records


def _asker(request: Request) -> Callable[[], Awaitable[bool]]:
    """Make what says whether the token or session that a stream was opened with is still good."""
    authenticator: Authenticator = request.app.state.authenticator
    shown = credentials_of(request.scope)

    async def is_welcome() -> bool:
        try:
            await authenticator.identify(shown)
        except Unauthenticated:
            return False
        return True

    return is_welcome


async def _start(query: StreamQuery, last_event_id: str | None, service: Services) -> int:
    """Return the number after which to begin."""
    newest = await service.read(lambda reads: reads.records.newest())
    given = _number(last_event_id) if last_event_id else query.last_event_id
    number = query.since if given is None else given
    if number is None:
        return newest
    if number > newest:
        # Another store's numbers, or this one's before a backup was restored.
        raise Conflict(f"there is no record {number} yet, the newest is {newest}: begin with ?since={newest}")
    return number


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > LARGEST:
        raise Invalid(f"Last-Event-ID: expected the number of a record, got {text[:100]!r}")
    return int(text)


class _Reader:
    """One who follows: reads on from a number when woken."""

    def __init__(
        self,
        records: FollowedRecords,
        wanted: RecordFilter,
        *,
        read: Read,
        heartbeat: float,
        is_welcome: Callable[[], Awaitable[bool]],
        cut_off: Signal,
    ) -> None:
        self._records = records
        self._read = read
        self._is_welcome = is_welcome
        self._cut_off = cut_off
        self._wanted = wanted
        self._heartbeat = heartbeat
        self._woken = asyncio.Event()

    async def events(self, number: int) -> AsyncGenerator[bytes, None]:
        """Give blocks to send until the service stops."""
        wake = waking(self._woken)
        with self._records.listening(wake), self._cut_off.listening(wake):
            yield sse.opening(number)
            # Who asks for all from the very first knows of nothing that could be missing.
            up_to = await self._read(lambda _: self._records.missing(number)) if number else None
            if up_to is not None:
                yield sse.missing(number, up_to)
            # The reader connects again, and learns then that the store is away.
            with suppress(Unavailable):
                async with aclosing(self._follow(number)) as blocks:
                    async for block in blocks:
                        yield block

    async def _follow(self, number: int) -> AsyncGenerator[bytes, None]:
        while not self._records.closed:
            self._woken.clear()
            found = await self._after(number)
            number = found.number
            # A token may be revoked, or expire, and a session end, while its stream is open.
            if not await self._is_welcome():
                return
            if found.records:
                yield b"".join(map(sse.event, found.records))
            if not found.more and not await self._news():
                yield sse.heartbeat(number)

    async def _after(self, number: int) -> Following:
        known = self._records.recent(number, self._wanted)
        if known is not None:
            return known
        return await self._read(lambda _: self._records.page(number, self._wanted, limit=PAGE))

    async def _news(self) -> bool:
        """Wait for news; say whether there are any, or it is time for a heartbeat."""
        try:
            async with asyncio.timeout(self._heartbeat):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True
