"""The connection of a guest: an asyncio protocol that reads requests and answers them in order."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import cast

from forewarn.guest.answers import GuestAnswer, without_body
from forewarn.guest.board.board import Key
from forewarn.guest.board.members import Allowance, BoardMachine, end
from forewarn.guest.guest_requests import NOTHING, Poll, Request, RequestFault
from forewarn.guest.http.open_connections import DeadlineTimer, OpenConnections
from forewarn.guest.http.parser import TOO_MANY, RequestParser
from forewarn.guest.http.refusals import Limit
from forewarn.guest.routes import operation_of
from forewarn.wire.texts import canonical

CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = b"Connection: keep-alive\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CROWDED = RequestFault(503, "Too many connections", retry=True)
UNKNOWN_MAC = ""


class Connection(asyncio.Protocol):
    """A connection and its caller; each request looks up the caller's machine again."""

    __slots__ = (
        "_began",
        "_by_address",
        "_connections",
        "_crowded",
        "_ending",
        "_fast",
        "_find_poll",
        "_handler",
        "_key",
        "_known",
        "_limits",
        "_loop",
        "_mac",
        "_members",
        "_queue",
        "_quiet",
        "_reader",
        "_request",
        "_task",
        "_timer",
        "_times",
        "_touched",
        "_transport",
        "_writable",
        "address",
        "allowance",
        "leaving",
        "waits_on",
    )

    _transport: asyncio.Transport

    def __init__(
        self, endpoint: OpenConnections, members: Mapping[Key, BoardMachine], *, key: Key = ""
    ) -> None:
        """Serve the machine with this key in `members`; if omitted, the key is the source address."""
        handler = endpoint.handler
        self._connections = endpoint
        self._handler = handler
        self._known = endpoint.known
        # Kept here, because attribute lookups count on the fast path.
        self._find_poll = endpoint.known.get
        self._fast = handler.answer_fast
        self._times = handler.times
        self._limits = handler.settings.limits
        self._members = members
        self._key = key
        self._by_address = key == ""
        self._mac: str | None = UNKNOWN_MAC  # of the sender of the SYN; None if the system cannot tell
        self._loop = asyncio.get_running_loop()
        self.allowance: Allowance = handler.board.unknown_callers
        self._reader = RequestParser(self._limits)
        self._queue: deque[Request | RequestFault] = deque()
        self._request = NOTHING  # the request that is being answered
        self._task: asyncio.Task[GuestAnswer | None] | None = None
        self._timer = DeadlineTimer(self._loop, self._check)
        self._began = self._touched = self._loop.time()
        self._quiet = True  # no request is incomplete or unanswered
        self._writable = True
        self._crowded = False
        self._ending = False  # the last answer has been sent
        self.leaving = endpoint.leaving
        self.waits_on: asyncio.Future[None] | None = None
        self.address = ""

    @property
    def member(self) -> BoardMachine | None:
        """The machine that the caller is now."""
        member = self._members.get(self._key)
        return None if member is None or self._is_spoofed(member) else member

    def _is_spoofed(self, member: BoardMachine) -> bool:
        """Whether the caller uses a machine's address from another MAC than the machine's."""
        own = member.machine.mac
        if own is None or not self._by_address:
            return False
        if self._mac == UNKNOWN_MAC:
            self._mac = self._connections.link_layer.mac(self._transport, self.address)
        if self._mac is None or self._mac == own:
            return False
        if not self.leaving:
            self._connections.impostors.note(member.machine, mac=self._mac, address=self.address)
            self.leave()
        return True

    # The transport calls these methods.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Identify the caller, and apply the limits on connections."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = canonical(peer[0]) if peer else ""
        if self._by_address:
            self._key = self.address
        member = self.member
        self.allowance = member or self.allowance
        self.allowance.connections += 1
        self._crowded = self.allowance.connections > self._limits.connections
        self._quiet = not (self._crowded or self.leaving)
        if self._crowded:
            who = "unknown callers have" if member is None else f"machine {member.machine.name} has"
            self._connections.refusals.note(Limit.ADDRESS, f"{who} {self._limits.connections} already")
        is_flood = self.allowance.connections > 2 * self._limits.connections
        if is_flood or not self._connections.admit(self):
            self._transport.abort()  # without an answer, to save work
            return
        self._timer.by(self._deadline())

    def data_received(self, data: bytes) -> None:
        """Answer a cached poll at once; parse any other data."""
        if self._quiet:
            # Calling a local variable is faster than calling a slot.
            find_poll = self._find_poll
            poll = find_poll(data)
            if poll is not None:
                member = self._members.get(self._key)
                if member is not None and member is self.allowance:
                    fast = self._fast
                    answer = fast(member, poll)
                    if answer is not None:
                        self._transport.write(answer)
                        self._touched = self._times.real
                        return
        self._read(data)

    def eof_received(self) -> bool:
        """Answer open requests without waiting further: the client has probably disconnected."""
        if self._ending or not self._owes:
            return False
        self.leave()
        return True

    def pause_writing(self) -> None:
        """Stop reading and answering while the client does not read."""
        self._writable = False
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Continue after `pause_writing`."""
        self._writable = True
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._work()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that the connection holds."""
        self._ending = True
        self._quiet = False
        self._connections.forget(self)
        self.allowance.connections -= 1
        self._timer.stop()
        if self._task is not None:
            self._task.cancel()
        self._reader.stop()

    # Closing

    @property
    def _owes(self) -> bool:
        """Whether a request is unanswered."""
        return self._task is not None or bool(self._queue)

    def leave(self) -> None:
        """End long polls, and close after the next answer."""
        self.leaving = True
        self._quiet = False  # not the fast path: the next answer must close the connection
        if self.waits_on is not None:
            end(self.waits_on)

    def finish(self) -> None:
        """Answer open requests, then close."""
        self.leave()
        if not self._owes and not self._ending:
            self._close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _close(self) -> None:
        self._ending = True
        self._quiet = False
        self._transport.close()

    def _check(self) -> float | None:
        deadline = self._deadline()
        if self._loop.time() < deadline:
            return deadline
        self._transport.abort()
        return None

    def _deadline(self) -> float:
        limits = self._limits
        if self._ending:
            return self._touched + limits.linger_seconds
        if self._reader.partial:
            return self._began + limits.request_seconds
        if self._task is not None:
            return self._loop.time() + limits.idle_seconds  # the client waits for the server
        return self._touched + (limits.request_seconds if self._crowded else limits.idle_seconds)

    # Reading and answering

    def _charge(self, member: BoardMachine | None) -> None:
        """Count this connection towards the machine that the caller is now."""
        allowance = member or self._handler.board.unknown_callers
        if allowance is not self.allowance:
            self.allowance.connections -= 1
            allowance.connections += 1
            self.allowance = allowance
            self._crowded = allowance.connections > self._limits.connections
            self._connections.recount(self)

    def _read(self, data: bytes) -> None:
        if self._ending:
            return
        reader, was_quiet, was_partial = self._reader, self._quiet, self._reader.partial
        arrived = [CROWDED] if self._crowded else reader.feed(data)
        self._queue.extend(arrived)
        if len(self._queue) > self._limits.pipelined:
            self._refuse_more()
        if reader.partial and (arrived or not was_partial):
            self._began = self._loop.time()
            self._timer.by(self._deadline())
        self._quiet = False
        whole = was_quiet and len(arrived) == 1 and not reader.partial
        self._work(data if whole else None)

    def _refuse_more(self) -> None:
        """Drop the requests beyond the limit, and answer the first of them with an error."""
        self._reader.stop()
        while len(self._queue) > self._limits.pipelined:
            self._queue.pop()
        self._queue.append(TOO_MANY)

    def _work(self, data: bytes | None = None) -> None:
        """Answer queued requests in order; `data` is given if it is exactly one request, for the cache."""
        while self._queue and self._task is None and self._writable and not self._ending:
            self._serve(self._queue.popleft(), data)
        if self._owes or self._ending:
            return
        if self.leaving:
            self._close()
            return
        if self._reader.expects_continue:
            self._reader.continue_sent()
            self._transport.write(CONTINUE)
        self._quiet = not self._reader.partial

    def _serve(self, item: Request | RequestFault, data: bytes | None) -> None:
        if isinstance(item, RequestFault):
            self._end_with(item)
            return
        self._request = item
        self._charge(self.member)
        if self._crowded:
            self._end_with(CROWDED)
            return
        admitted = self._handler.admit(item, self)
        if isinstance(admitted, RequestFault):
            self._end_with(admitted)
        elif isinstance(admitted, GuestAnswer):
            self._send(admitted)
        else:
            self._begin(item, admitted, data)

    def _begin(self, request: Request, member: BoardMachine, data: bytes | None) -> None:
        """Answer the request of a machine, now or with a task."""
        wanted = operation_of(request, self._handler.settings)
        if data is not None and isinstance(wanted, Poll) and request.http11 and request.keep_alive:
            self._known.add(data, wanted, by=member.machine.id)
        outcome = self._handler.begin(wanted, member, self)
        if isinstance(outcome, GuestAnswer):
            self._send(outcome)
        else:
            self._task = self._loop.create_task(outcome)
            self._task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[GuestAnswer | None]) -> None:
        self._task = None
        if self._ending or task.cancelled():
            return
        answer = task.result()
        if answer is None:
            self._close()
            return
        self._send(answer)
        self._work()

    def _send(self, answer: GuestAnswer) -> None:
        request = self._request
        last = not request.keep_alive or (self.leaving and not self._queue)
        if request.method == b"HEAD":
            answer = without_body(answer)
        self._request = NOTHING  # frees the body
        self._write(answer, CLOSE if last else b"" if request.http11 else KEEP_ALIVE)
        if last:
            self._close()

    def _end_with(self, fault: RequestFault) -> None:
        """Answer with an error, and give the client time to read it before the connection is aborted."""
        self._write(self._handler.errors.fault(fault), CLOSE)
        self._ending = True
        self._transport.write_eof()
        self._timer.by(self._deadline())

    def _write(self, answer: GuestAnswer, connection: bytes) -> None:
        times = self._times
        self._touched = times.refresh()
        self._transport.write(times.opening(answer.status) + connection + answer.rest)
