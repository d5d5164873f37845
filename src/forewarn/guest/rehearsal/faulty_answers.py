"""The guests of machines that play in a rehearsal: answered as ever, but for the faults that are on."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

from forewarn.core.guests.document import Document, resource_names
from forewarn.core.model.event import Event
from forewarn.core.rehearsal.faults import Fault, FaultKind
from forewarn.guest.answers import answers
from forewarn.guest.answers.answers import Answer, Errors
from forewarn.guest.answers.patience import Caller, Patience, seat_of
from forewarn.guest.answers.time_cache import Pulse
from forewarn.guest.board.board import Board, Seat
from forewarn.guest.board.rehearsal_state import Role
from forewarn.guest.requests.plan import Approve, Defer, Poll
from forewarn.wire import azure
from forewarn.wire.azure import VERSIONS, write_document

Asked: TypeAlias = Poll | Approve | Defer

OK = 200
NOT_MODIFIED = 304
PLAIN = "text/plain"
# What is wrong with a document that is as it should be but for what it tells.
MISLEADING = {
    FaultKind.VANISHED: "a document without its events",
    FaultKind.BORN_STARTED: "a document without what is only scheduled",
    FaultKind.SHORT_NOTICE: "a document without what has long notice",
    FaultKind.INCARNATION_RESTART: "an incarnation that restarts",
}


class Ordinary(Protocol):
    """How those are answered who play no part."""

    async def answer(self, caller: Caller, asked: Asked, /) -> Answer | None:
        """Answer a request about events."""
        ...

    def tell(self, seat: Seat, poll: Poll, /) -> Answer:
        """Answer with the document, or that the caller has it."""
        ...


class Rehearsing:
    """Answers requests about events of machines that have a role."""

    def __init__(
        self, ordinary: Ordinary, *, board: Board, pulse: Pulse, patience: Patience, errors: Errors
    ) -> None:
        self._ordinary = ordinary
        self._board = board
        self._pulse = pulse
        self._patience = patience
        self._errors = errors

    async def answer(self, caller: Caller, asked: Asked, role: Role) -> Answer | None:
        """Answer, or with None hang up."""
        if isinstance(asked, Poll):
            role.ledger.polled(role.machine, now=self._now())
        return await self._answer(caller, asked, role)

    async def _answer(self, caller: Caller, asked: Asked, role: Role) -> Answer | None:
        met = role.meet(self._now())
        kinds = {fault.kind: fault for fault in met}
        if slow := kinds.get(FaultKind.SLOW):
            await self._dawdle(caller, role, slow)
            if seat_of(caller).role is not role:
                return await self._ordinary.answer(caller, asked)  # the rehearsal is over
        if hang := kinds.get(FaultKind.HANG):
            await self._hang(caller, role, hang)
            return None
        if (refusal := self._refusal(kinds)) is not None:
            role.ledger.spoiled(role.machine, f"a {refusal.status}")
            return refusal
        if isinstance(asked, Poll):
            return await self._poll(caller, asked, role, met)
        return await self._take(caller, asked, role)

    async def _dawdle(self, caller: Caller, role: Role, slow: Fault) -> None:
        role.ledger.spoiled(role.machine, "a slow answer")
        ends = self._now() + slow.delay
        while self._now() < ends and role.still(slow) and not caller.leaving:
            await self._patience.wait(caller, seat_of(caller), self._pulse.until(ends.timestamp()))

    async def _hang(self, caller: Caller, role: Role, hang: Fault) -> None:
        role.ledger.spoiled(role.machine, "an endpoint that hangs")
        while (fault := role.still(hang)) and fault.on(self._now()) and not caller.leaving:
            ends = None if fault.until is None else self._pulse.until(fault.until.timestamp())
            await self._patience.wait(caller, seat_of(caller), ends)

    def _refusal(self, kinds: Collection[FaultKind]) -> Answer | None:
        """Give what the service itself, or what stands before it, answers in trouble."""
        if FaultKind.TOO_MANY in kinds:
            return self._errors.too_many()
        if FaultKind.ERROR in kinds:
            return self._errors.broken()
        if FaultKind.UNAVAILABLE in kinds:
            return self._errors.unavailable("Service unavailable")
        return None

    async def _take(self, caller: Caller, asked: Approve | Defer, role: Role) -> Answer | None:
        answer = await self._ordinary.answer(caller, asked)
        now, what = self._now(), "approval" if isinstance(asked, Approve) else "wish for more time"
        if answer is None or answer.status != OK:
            role.ledger.spoiled(role.machine, f"a {answer.status if answer else 'silence'} to its {what}")
            return answer
        role.ledger.sound(role.machine, now=now)
        if isinstance(asked, Approve):
            role.ledger.approved(role.machine, azure.read_start_requests(asked.body), now=now)
        return answer

    # Documents

    async def _poll(self, caller: Caller, poll: Poll, role: Role, met: Sequence[Fault]) -> Answer | None:
        seat = await self._patience.ready(caller)
        if not met and not role.telling.twisted and poll.wait:
            seat, poll = await self._patience.change(caller, poll)
        if seat.role is not role:
            return await self._ordinary.answer(caller, poll)  # the rehearsal is over
        if not met and role.spoils(self._now()):
            return await self._answer(caller, poll, role)  # one has begun while the request was held
        if any(fault.kind is FaultKind.EMPTY for fault in met):
            role.ledger.spoiled(role.machine, "an empty answer")
            return answers.content(b"")
        instead = role.telling.tell(seat.audience.document, met, now=self._now())
        answer = self._ordinary.tell(seat, poll) if instead is None else self._tell(seat, poll, instead)
        if answer.status == OK:
            known = VERSIONS[poll.version].types
            shown = (instead or seat.audience.document).events
            sent = {str(event.id): _named(event) for event in shown if event.type in known}
            role.ledger.sent(role.machine, sent, now=self._now())
            if any(fault.kind is FaultKind.TEXT for fault in met):
                answer = answers.relabelled(answer, PLAIN)
        self._judge(role, seat.audience.document, met)
        return answer

    def _judge(self, role: Role, document: Document, met: Sequence[Fault]) -> None:
        """Write down whether what was told is as it should be."""
        now = self._now()
        for fault in met:
            hides = any(fault.hides(event, now) for event in document.events)
            if fault.kind is FaultKind.TEXT:
                role.ledger.spoiled(role.machine, PLAIN)
                return
            if hides or fault.kind is FaultKind.INCARNATION_RESTART:
                role.ledger.spoiled(role.machine, MISLEADING[fault.kind])
                return
        role.ledger.sound(role.machine, now=now)

    def _tell(self, seat: Seat, poll: Poll, document: Document) -> Answer:
        """Answer with another document than there is; only what it shows counts as sent."""
        etag = f"{document.incarnation}-rehearsal".encode()
        if poll.has(etag):
            return answers.not_modified(etag)
        shown = {event.id for event in document.events}
        own = [event for event in seat.audience.naming(seat.machine.id) if event.id in shown]
        self._board.tell_of(seat, poll.version, own, self._pulse.seconds)
        body = write_document(document, VERSIONS[poll.version])
        return answers.with_header(answers.content(body), b'ETag: "%b"\r\n' % etag)

    def _now(self) -> datetime:
        self._pulse.beat()
        return datetime.fromtimestamp(self._pulse.seconds, UTC)


def _named(event: Event) -> str:
    names = ", ".join(resource_names(event))
    return f"{event.type} of {names} ({event.status}, event {event.id[:8]})"
