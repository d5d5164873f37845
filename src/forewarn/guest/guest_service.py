"""What is answered to whom: every request comes by here, and most are answered at once."""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from forewarn.core.errors import Conflict, ForewarnError, Invalid, NotFound
from forewarn.guest.answers import answers
from forewarn.guest.answers.answers import Answer, Errors
from forewarn.guest.answers.patience import (
    Caller,
    Gone,
    Patience,
    seat_of,
)
from forewarn.guest.answers.time_cache import Pulse
from forewarn.guest.board.board import Board, Seat
from forewarn.guest.commands import Desk
from forewarn.guest.rate_limit import Rate
from forewarn.guest.rehearsal.faulty_answers import Rehearsing
from forewarn.guest.requests.plan import (
    Approve,
    AskInstance,
    Defer,
    ListVersions,
    Plan,
    Poll,
    Refusal,
)
from forewarn.guest.settings import EndpointSettings
from forewarn.wire import azure, instance

log = logging.getLogger(__name__)

Later: TypeAlias = Coroutine[Any, Any, Answer | None]  # None: hang up
Asked = TypeVar("Asked", Poll, Approve, Defer, Poll | Approve | Defer)


class Service:
    """Answers the requests of known callers from the board, and takes what they bring to the desk."""

    def __init__(
        self, board: Board, desk: Desk, *, pulse: Pulse, settings: EndpointSettings, new_id: Callable[[], str]
    ) -> None:
        self.settings = settings
        self.errors = Errors(new_id)
        self.pulse = pulse
        self.board = board
        self._desk = desk
        self.polls = 0  # answered with a document, or that it has not changed
        self.approvals = 0
        self._rate = Rate(settings.rate)
        self._interval = self._rate.interval
        self._slack = self._rate.slack
        self._patience = Patience(board, desk, pulse, settings.limits)
        self._rehearsing = Rehearsing(
            self, board=board, pulse=pulse, patience=self._patience, errors=self.errors
        )

    def quick(self, seat: Seat, poll: Poll) -> bytes | None:
        """Answer a known poll of a known machine; None if it is not that simple.

        This runs for nearly every request of a fleet's life, so it does by hand what `begin` and its
        parts do in more words; the tests hold both to the same answers.
        """
        pulse = self.pulse
        real = pulse.time()
        if real != pulse.real or pulse.told:
            pulse.renew(real)
        seconds = pulse.seconds
        audience = seat.audience
        if audience.ready > seconds or poll.wait is not None or seat.role is not None:
            return None
        ahead = seat.due - real
        if ahead <= 0.0:
            seat.due = real + self._interval
        elif ahead <= self._slack:
            seat.due += self._interval
        else:
            return None
        self.polls += 1
        board = self.board
        board.seen[seat] = seconds
        board.polled[audience] = seconds
        if not poll.plain and poll.has(board.etag(audience)):
            return pulse.not_modified + answers.not_modified(audience.etag).rest
        if seat.told != audience.news:
            board.tell(seat, poll.version, seconds)
        return pulse.ok + (audience.rests[poll.version] or board.rest(audience, poll.version))

    def begin(self, plan: Plan, caller: Caller) -> Answer | Later:
        """Answer a request, or say how it will be answered."""
        if isinstance(plan, Refusal) and plan.early:
            return self.errors.refusal(plan)
        seat = caller.seat
        if not self._rate.admit(seat or self.board.strangers, self.pulse.beat()):
            return self.errors.too_many()
        if seat is None:
            return self.errors.not_found()
        return self._begin(plan, seat, caller)

    def _begin(self, plan: Plan, seat: Seat, caller: Caller) -> Answer | Later:
        match plan:
            case Refusal():
                return self.errors.refusal(plan)
            case ListVersions():
                return answers.content(azure.VERSION_LIST)
            case AskInstance():
                return self._describe(seat, plan)
            case Poll() | Approve() | Defer():
                return self._about_events(seat, plan, caller)

    def _about_events(self, seat: Seat, asked: Poll | Approve | Defer, caller: Caller) -> Answer | Later:
        self.board.note(seat, self.pulse.seconds)
        if seat.role is not None:
            return self._guard(self._rehearsed, caller, asked)
        if isinstance(asked, Poll):
            ready = seat.audience.ready <= self.pulse.seconds
            if ready and not (asked.wait and asked.has(self.board.etag(seat.audience))):
                return self.tell(seat, asked)
        return self.answer(caller, asked)

    async def answer(self, caller: Caller, asked: Poll | Approve | Defer) -> Answer | None:
        """Answer a request about events as if there were no rehearsals."""
        match asked:
            case Poll():
                return await self._guard(self._poll, caller, asked)
            case Approve():
                return await self._guard(self._approve, caller, asked)
            case Defer():
                return await self._guard(self._defer, caller, asked)

    async def _rehearsed(self, caller: Caller, asked: Poll | Approve | Defer) -> Answer | None:
        role = seat_of(caller).role
        if role is None:
            return await self.answer(caller, asked)
        return await self._rehearsing.answer(caller, asked, role)

    def _describe(self, seat: Seat, asked: AskInstance) -> Answer:
        kind = seat.audience.document.kind
        if asked.field is None:
            compute = instance.compute(seat.machine, kind, detail=self.settings.instance)
            return answers.content(azure.compact({"compute": compute} if asked.wrapped else compute))
        value = instance.compute_field(seat.machine, kind, asked.field)
        if isinstance(value, str):
            return answers.content(value.encode(errors="replace"), kind=answers.TEXT)
        return answers.content(azure.compact(value))

    async def _poll(self, caller: Caller, poll: Poll) -> Answer | None:
        if poll.wait:
            seat, poll = await self._patience.change(caller, poll)
        else:
            seat = await self._patience.ready(caller)
        if seat.role is not None:  # it was given one while it waited
            return await self._rehearsing.answer(caller, poll, seat.role)
        return self.tell(seat, poll)

    def tell(self, seat: Seat, poll: Poll) -> Answer:
        """Answer with the document, or that the caller has it."""
        self.polls += 1
        etag = self.board.etag(seat.audience)
        if poll.has(etag):
            answer = answers.not_modified(etag)
        else:
            answer = Answer(200, self.board.rest(seat.audience, poll.version))
            if seat.told != seat.audience.news:
                self.pulse.beat()
                self.board.tell(seat, poll.version, self.pulse.seconds)
        if poll.wait is None:
            return answer
        return answers.with_header(answer, b"Preference-Applied: wait=%d\r\n" % poll.wait)

    async def _approve(self, caller: Caller, plan: Approve) -> Answer:
        """Take an approval to the desk; a faulty one is still a request that enables the group."""
        try:
            events = azure.read_start_requests(plan.body)
        except Invalid as fault:
            await self._patience.enabled(caller)
            return self.errors.invalid(str(fault))
        seat = await self._patience.ready(caller)
        await self._desk.approve(seat.machine.id, events, address=caller.address)
        self.approvals += 1
        return answers.APPROVED

    async def _defer(self, caller: Caller, plan: Defer) -> Answer:
        """Take a wish for more time to the desk; what cannot be put off is a conflict."""
        try:
            events = azure.read_defer_requests(plan.body)
        except Invalid as fault:
            await self._patience.enabled(caller)
            return self.errors.invalid(str(fault))
        seat = await self._patience.ready(caller)
        try:
            await self._desk.defer(seat.machine.id, events, address=caller.address)
        except Conflict as refusal:
            return self.errors.conflict(str(refusal))
        return answers.APPROVED

    async def _guard(
        self, work: Callable[[Caller, Asked], Later], caller: Caller, asked: Asked
    ) -> Answer | None:
        """Turn whatever goes wrong into an answer: the one place where errors become status codes."""
        try:
            return await work(caller, asked)
        except Gone:
            return self.errors.not_found()
        except (Invalid, NotFound) as error:
            # A machine that was removed meanwhile is no longer told anything.
            return self.errors.not_found() if caller.seat is None else self.errors.invalid(str(error))
        except ForewarnError as error:
            return self.errors.unavailable(str(error))
        except Exception:
            log.exception("a guest's request failed")
            return self.errors.broken()
