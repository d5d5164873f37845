"""The handler of all guest requests; it answers most of them at once."""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from forewarn.core.errors import Conflict, ForewarnError, Invalid, NotFound
from forewarn.guest import answers
from forewarn.guest.answers import ErrorAnswers, GuestAnswer, TimeCache
from forewarn.guest.board.board import Board
from forewarn.guest.board.members import BoardMachine, Rate
from forewarn.guest.guest_requests import (
    Approve,
    Defer,
    GetInstance,
    GetNetwork,
    ListVersions,
    Operation,
    Poll,
    Refusal,
    Request,
    RequestFault,
)
from forewarn.guest.long_polls import CallerGone, GuestCaller, LongPolls, TryAgain, member_of
from forewarn.guest.rehearsal import FaultyAnswers
from forewarn.guest.routes import refusal_of
from forewarn.guest.settings import EndpointSettings, GuestCommands
from forewarn.wire import azure, instance
from forewarn.wire.instance import InstanceDefaults, InstanceMetadata

log = logging.getLogger(__name__)

Later: TypeAlias = Coroutine[Any, Any, GuestAnswer | None]  # None: close the connection without an answer
Asked = TypeVar("Asked", Poll, Approve, Defer, Poll | Approve | Defer)


class RequestHandler:
    """Answers requests from the board, and passes approvals and deferrals on as commands."""

    def __init__(
        self,
        board: Board,
        commands: GuestCommands,
        *,
        times: TimeCache,
        settings: EndpointSettings,
        new_id: Callable[[], str],
    ) -> None:
        self.settings = settings
        self.errors = ErrorAnswers(new_id)
        self.times = times
        self.board = board
        self.commands = commands
        self.polls = 0  # answered with 200 or 304
        self.approvals = 0
        self._rate = Rate(settings.rate)
        self._interval = self._rate.interval
        self._slack = self._rate.slack
        self._long_polls = LongPolls(board, commands, times, settings.limits)
        self._faulty = FaultyAnswers(
            self, board=board, times=times, long_polls=self._long_polls, errors=self.errors
        )

    def answer_fast(self, member: BoardMachine, poll: Poll) -> bytes | None:
        """Answer a cached poll of a known machine; None if `begin` has to answer it.

        Nearly every request takes this path, so it repeats `begin` and its helpers without their calls.
        Tests compare the answers of both.
        """
        times = self.times
        now = times.time
        real = now()
        if real != times.valid_at:
            times.renew(real)
        seconds = times.seconds
        group = member.group
        if group.ready > seconds or member.rehearsal is not None:
            return None
        ahead = member.due - real
        if ahead <= 0.0:
            member.due = real + self._interval
        elif ahead <= self._slack:
            member.due += self._interval
        else:
            return None
        self.polls += 1
        board = self.board
        board.seen[member] = seconds
        board.polled[group] = seconds
        if not poll.plain and ((group.etag or board.etag(group)) in poll.match or poll.match_any):
            return times.not_modified + group.unmodified
        if member.last_sent != group.news:
            board.note_sent(member, poll.version, seconds)
        return times.ok + (group.rests[poll.version] or board.rest(group, poll.version))

    def admit(self, request: Request, caller: GuestCaller) -> BoardMachine | GuestAnswer | RequestFault:
        """Return the machine that sent a request, or the reason why the request is refused unread."""
        refusal = refusal_of(request, self.settings)
        if refusal is not None:
            return self.errors.refusal(refusal) if isinstance(refusal, Refusal) else refusal
        member = caller.member
        if not self._rate.admit(member or self.board.unknown_callers, self.times.refresh()):
            return self.errors.too_many()
        return self.errors.not_found() if member is None else member

    def begin(self, wanted: Operation, member: BoardMachine, caller: GuestCaller) -> GuestAnswer | Later:
        """Return the answer to a machine's request, or the coroutine that answers it."""
        match wanted:
            case Refusal():
                return self.errors.refusal(wanted)
            case ListVersions():
                return answers.content(azure.VERSION_LIST[self.settings.preview])
            case GetInstance():
                return self._describe(member, wanted)
            case GetNetwork():
                found = instance.part_of(instance.network(member.machine), wanted.path)
                return self.errors.not_found() if found is None else answers.text_or_json(found)
            case Poll() | Approve() | Defer():
                return self._about_events(member, wanted, caller)

    def _about_events(
        self, member: BoardMachine, asked: Poll | Approve | Defer, caller: GuestCaller
    ) -> GuestAnswer | Later:
        self.board.note(member, self.times.seconds)
        if member.rehearsal is not None:
            return self._guard(self._rehearsed, caller, asked)
        if isinstance(asked, Poll):
            ready = member.group.ready <= self.times.seconds
            if ready and not (asked.wait and asked.has(self.board.etag(member.group))):
                return self.document(member, asked)
        return self.answer(caller, asked)

    async def answer(self, caller: GuestCaller, asked: Poll | Approve | Defer) -> GuestAnswer | None:
        """Answer a request about events, ignoring rehearsals."""
        match asked:
            case Poll():
                return await self._guard(self._poll, caller, asked)
            case Approve():
                return await self._guard(self._approve, caller, asked)
            case Defer():
                return await self._guard(self._defer, caller, asked)

    async def _rehearsed(self, caller: GuestCaller, asked: Poll | Approve | Defer) -> GuestAnswer | None:
        state = member_of(caller).rehearsal
        if state is None:
            return await self.answer(caller, asked)
        return await self._faulty.answer(caller, asked, state)

    def _describe(self, member: BoardMachine, asked: GetInstance) -> GuestAnswer:
        defaults = InstanceDefaults(location=self.settings.location, size=self.settings.size)
        subject = instance.Subject(member.machine, member.group.document.kind, defaults)
        if asked.field is not None:
            return answers.text_or_json(instance.compute_field(subject, asked.field))
        detail = InstanceMetadata(self.settings.instance)
        compute = instance.compute(subject, detail=detail)
        if not asked.whole:
            return answers.text_or_json(compute)
        if detail is not InstanceMetadata.FULL:
            return answers.text_or_json({"compute": compute})
        return answers.text_or_json({"compute": compute, "network": instance.network(member.machine)})

    async def _poll(self, caller: GuestCaller, poll: Poll) -> GuestAnswer | None:
        if poll.wait:
            member, poll = await self._long_polls.change(caller, poll)
        else:
            member = await self._long_polls.ready(caller)
        if member.rehearsal is not None:  # a rehearsal began while the request waited
            return await self._faulty.answer(caller, poll, member.rehearsal)
        return self.document(member, poll)

    def document(self, member: BoardMachine, poll: Poll) -> GuestAnswer:
        """Answer with the document, or with 304 if the caller has it."""
        self.polls += 1
        etag = self.board.etag(member.group)
        if poll.has(etag):
            answer = GuestAnswer(304, member.group.unmodified)
        else:
            answer = GuestAnswer(200, self.board.rest(member.group, poll.version))
            if member.last_sent != member.group.news:
                self.times.refresh()
                self.board.note_sent(member, poll.version, self.times.seconds)
        if poll.wait is None:
            return answer
        return answers.with_header(answer, b"Preference-Applied: wait=%d\r\n" % poll.wait)

    async def _approve(self, caller: GuestCaller, asked: Approve) -> GuestAnswer:
        """Approve events; even an invalid approval enables the group."""
        try:
            events = azure.read_start_requests(asked.body)
        except Invalid as fault:
            await self._long_polls.enabled(caller)
            return self.errors.invalid(str(fault))
        member = await self._long_polls.ready(caller)
        await self.commands.approve(member.machine.id, events, address=caller.address)
        self.approvals += 1
        return answers.APPROVED

    async def _defer(self, caller: GuestCaller, asked: Defer) -> GuestAnswer:
        try:
            events = azure.read_defer_requests(asked.body)
        except Invalid as fault:
            await self._long_polls.enabled(caller)
            return self.errors.invalid(str(fault))
        member = await self._long_polls.ready(caller)
        try:
            await self.commands.defer(member.machine.id, events, address=caller.address)
        except Conflict as refusal:
            return self.errors.conflict(str(refusal))
        return answers.APPROVED

    async def _guard(
        self, work: Callable[[GuestCaller, Asked], Later], caller: GuestCaller, asked: Asked
    ) -> GuestAnswer | None:
        """Turn exceptions into error answers; no other code does this."""
        try:
            return await work(caller, asked)
        except CallerGone:
            return self.errors.not_found()
        except (Invalid, NotFound) as error:
            # A machine that has been removed must not learn more than an unknown caller.
            return self.errors.not_found() if caller.member is None else self.errors.invalid(str(error))
        except TryAgain as error:
            return self.errors.unavailable(str(error))
        except ForewarnError:
            # The message may name the database. It is for operators, who find it in the log.
            return self.errors.unavailable("Nothing can be saved now")
        except Exception:
            log.exception("a guest's request failed")
            return self.errors.broken()
