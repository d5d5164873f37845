"""What is answered to whom: every request comes by here, and most are answered at once."""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from forewarn.core.errors import Conflict, ForewarnError, Invalid, NotFound
from forewarn.guest import answers
from forewarn.guest.answers import ErrorAnswers, GuestAnswer, TimeCache
from forewarn.guest.board.board import Board
from forewarn.guest.board.members import BoardMachine, Rate
from forewarn.guest.rehearsal import FaultyAnswers
from forewarn.guest.requests import (
    Approve,
    AskInstance,
    AskNetwork,
    Defer,
    ListVersions,
    Plan,
    Poll,
    Refusal,
    Request,
    RequestFault,
)
from forewarn.guest.routes import refusal_of
from forewarn.guest.settings import EndpointSettings, GuestCommands
from forewarn.guest.long_polls import (
    CallerGone,
    GuestCaller,
    TryAgain,
    Waits,
    member_of,
)
from forewarn.wire import azure, instance
from forewarn.wire.instance import InstanceMetadata

log = logging.getLogger(__name__)

Later: TypeAlias = Coroutine[Any, Any, GuestAnswer | None]  # None: hang up
Asked = TypeVar("Asked", Poll, Approve, Defer, Poll | Approve | Defer)


class GuestService:
    """Answers the requests of known callers from the board, and carries out what they change."""

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
        self.polls = 0  # answered with a document, or that it has not changed
        self.approvals = 0
        self._rate = Rate(settings.rate)
        self._interval = self._rate.interval
        self._slack = self._rate.slack
        self._waits = Waits(board, commands, times, settings.limits)
        self._faulty = FaultyAnswers(self, board=board, times=times, waits=self._waits, errors=self.errors)

    def quick(self, member: BoardMachine, poll: Poll) -> bytes | None:
        """Answer a known poll of a known machine, which waits for nothing; None if it is not that simple.

        This runs for nearly every request of a fleet's life, so it does by hand what `begin` and its
        parts do in more words; the tests hold both to the same answers.
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
        """Return whose request it is, or why it is refused before anything more of it is read."""
        refusal = refusal_of(request, self.settings)
        if refusal is not None:
            return self.errors.refusal(refusal) if isinstance(refusal, Refusal) else refusal
        member = caller.member
        if not self._rate.admit(member or self.board.unknown_callers, self.times.refresh()):
            return self.errors.too_many()
        return self.errors.not_found() if member is None else member

    def begin(self, plan: Plan, member: BoardMachine, caller: GuestCaller) -> GuestAnswer | Later:
        """Answer a machine's request, or say how it will be answered."""
        match plan:
            case Refusal():
                return self.errors.refusal(plan)
            case ListVersions():
                return answers.content(azure.VERSION_LIST[self.settings.preview])
            case AskInstance():
                return self._describe(member, plan)
            case AskNetwork():
                return self._describe_network(member, plan)
            case Poll() | Approve() | Defer():
                return self._about_events(member, plan, caller)

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
        """Answer a request about events as if there were no rehearsals."""
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

    def _describe(self, member: BoardMachine, asked: AskInstance) -> GuestAnswer:
        subject = instance.Subject(
            member.machine, member.group.document.kind, self.settings.instance_defaults
        )
        if asked.field is not None:
            return answers.text_or_json(instance.compute_field(subject, asked.field))
        detail = self.settings.instance
        compute = instance.compute(subject, detail=detail)
        if not asked.whole:
            return answers.text_or_json(compute)
        if detail is not InstanceMetadata.FULL:
            return answers.text_or_json({"compute": compute})
        return answers.text_or_json({"compute": compute, "network": instance.network(member.machine)})

    def _describe_network(self, member: BoardMachine, asked: AskNetwork) -> GuestAnswer:
        found = instance.part_of(instance.network(member.machine), asked.path)
        return self.errors.not_found() if found is None else answers.text_or_json(found)

    async def _poll(self, caller: GuestCaller, poll: Poll) -> GuestAnswer | None:
        if poll.wait:
            member, poll = await self._waits.change(caller, poll)
        else:
            member = await self._waits.ready(caller)
        if member.rehearsal is not None:  # it was given one while it waited
            return await self._faulty.answer(caller, poll, member.rehearsal)
        return self.document(member, poll)

    def document(self, member: BoardMachine, poll: Poll) -> GuestAnswer:
        """Answer with the document, or that the caller has it."""
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

    async def _approve(self, caller: GuestCaller, plan: Approve) -> GuestAnswer:
        """Approve; a faulty approval is still a request that enables the group."""
        try:
            events = azure.read_start_requests(plan.body)
        except Invalid as fault:
            await self._waits.enabled(caller)
            return self.errors.invalid(str(fault))
        member = await self._waits.ready(caller)
        await self.commands.approve(member.machine.id, events, address=caller.address)
        self.approvals += 1
        return answers.APPROVED

    async def _defer(self, caller: GuestCaller, plan: Defer) -> GuestAnswer:
        """Defer; what cannot be deferred is a conflict."""
        try:
            events = azure.read_defer_requests(plan.body)
        except Invalid as fault:
            await self._waits.enabled(caller)
            return self.errors.invalid(str(fault))
        member = await self._waits.ready(caller)
        try:
            await self.commands.defer(member.machine.id, events, address=caller.address)
        except Conflict as refusal:
            return self.errors.conflict(str(refusal))
        return answers.APPROVED

    async def _guard(
        self, work: Callable[[GuestCaller, Asked], Later], caller: GuestCaller, asked: Asked
    ) -> GuestAnswer | None:
        """Turn whatever goes wrong into an answer: the one place where errors become status codes."""
        try:
            return await work(caller, asked)
        except CallerGone:
            return self.errors.not_found()
        except (Invalid, NotFound) as error:
            # A machine that was removed meanwhile learns no more.
            return self.errors.not_found() if caller.member is None else self.errors.invalid(str(error))
        except TryAgain as error:
            return self.errors.unavailable(str(error))
        except ForewarnError:
            # What it says is for operators, who find it in the log: it may name the database.
            return self.errors.unavailable("Nothing can be saved now")
        except Exception:
            log.exception("a guest's request failed")
            return self.errors.broken()
