"""Rehearsals at the guest endpoint: which faults guests get, and the faulty answers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

from forewarn.core.basic_types import MachineId, ProjectName
from forewarn.core.guests.document import GroupDocument, resource_names
from forewarn.core.model.event import Event
from forewarn.core.rehearsal_ledger import GuestAccount, GuestLedger
from forewarn.core.rehearsal_rules import Fault, FaultKind
from forewarn.guest import answers
from forewarn.guest.answers import ErrorAnswers, GuestAnswer, TimeCache
from forewarn.guest.board.board import Board
from forewarn.guest.board.members import BoardMachine
from forewarn.guest.board.rehearsal_state import RehearsalState
from forewarn.guest.guest_requests import Approve, Defer, Poll
from forewarn.guest.long_polls import GuestCaller, LongPolls, member_of
from forewarn.wire import azure
from forewarn.wire.azure import VERSIONS, write_document

Asked: TypeAlias = Poll | Approve | Defer
OK = 200
PLAIN = "text/plain"
# The ledger's description of a document that is correct except for its events or its incarnation.
MISLEADING = {
    FaultKind.VANISHED: "a document without its events",
    FaultKind.BORN_STARTED: "a document without its scheduled events",
    FaultKind.SHORT_NOTICE: "a document without the events that have long notice",
    FaultKind.INCARNATION_RESTART: "an incarnation that restarts",
}


class OrdinaryAnswers(Protocol):
    """Answers machines outside rehearsals."""

    async def answer(self, caller: GuestCaller, asked: Asked, /) -> GuestAnswer | None:
        """Answer a request about events."""
        ...

    def document(self, member: BoardMachine, poll: Poll, /) -> GuestAnswer:
        """Answer with the document, or with 304 if the caller has it."""
        ...


class FaultyAnswers:
    """Answers requests about events from machines in a rehearsal."""

    def __init__(
        self,
        ordinary: OrdinaryAnswers,
        *,
        board: Board,
        times: TimeCache,
        long_polls: LongPolls,
        errors: ErrorAnswers,
    ) -> None:
        self._ordinary = ordinary
        self._board = board
        self._times = times
        self._long_polls = long_polls
        self._errors = errors

    async def answer(self, caller: GuestCaller, asked: Asked, state: RehearsalState) -> GuestAnswer | None:
        """Answer a request; None closes the connection without an answer."""
        if isinstance(asked, Poll):
            state.ledger.polled(state.machine, now=self._now())
        return await self._answer(caller, asked, state)

    async def _answer(self, caller: GuestCaller, asked: Asked, state: RehearsalState) -> GuestAnswer | None:
        met = state.take_faults(self._now())
        kinds = {fault.kind: fault for fault in met}
        if slow := kinds.get(FaultKind.SLOW):
            await self._delay(caller, state, slow)
            if member_of(caller).rehearsal is not state:
                return await self._ordinary.answer(caller, asked)  # the rehearsal is over
        if hang := kinds.get(FaultKind.HANG):
            await self._hang(caller, state, hang)
            return None
        if (refusal := self._refusal(kinds)) is not None:
            state.ledger.spoiled(state.machine, f"a {refusal.status}")
            return refusal
        if isinstance(asked, Poll):
            return await self._poll(caller, asked, state, met)
        return await self._take(caller, asked, state)

    async def _delay(self, caller: GuestCaller, state: RehearsalState, slow: Fault) -> None:
        state.ledger.spoiled(state.machine, "a slow answer")
        ends = self._now() + slow.delay
        while self._now() < ends and state.still(slow) and not caller.leaving:
            await self._long_polls.wait(caller, member_of(caller), self._times.until(ends.timestamp()))

    async def _hang(self, caller: GuestCaller, state: RehearsalState, hang: Fault) -> None:
        state.ledger.spoiled(state.machine, "an endpoint that hangs")
        while (fault := state.still(hang)) and fault.on(self._now()) and not caller.leaving:
            ends = None if fault.until is None else self._times.until(fault.until.timestamp())
            await self._long_polls.wait(caller, member_of(caller), ends)

    def _refusal(self, kinds: Collection[FaultKind]) -> GuestAnswer | None:
        """Return the error that the endpoint, or a proxy before it, answers under load or in failure."""
        if FaultKind.TOO_MANY in kinds:
            return self._errors.too_many()
        if FaultKind.ERROR in kinds:
            return self._errors.broken()
        if FaultKind.UNAVAILABLE in kinds:
            return self._errors.unavailable("Service unavailable")
        return None

    async def _take(
        self, caller: GuestCaller, asked: Approve | Defer, state: RehearsalState
    ) -> GuestAnswer | None:
        began = self._now()  # before the approved work starts
        answer = await self._ordinary.answer(caller, asked)
        what = "approval" if isinstance(asked, Approve) else "deferral"
        if answer is None or answer.status != OK:
            state.ledger.spoiled(state.machine, f"a {answer.status if answer else 'silence'} to its {what}")
            return answer
        state.ledger.sound(state.machine, now=self._now())
        if isinstance(asked, Approve):
            state.ledger.approved(state.machine, azure.read_start_requests(asked.body), now=began)
        return answer

    # Documents

    async def _poll(
        self, caller: GuestCaller, poll: Poll, state: RehearsalState, met: Sequence[Fault]
    ) -> GuestAnswer | None:
        member = await self._long_polls.ready(caller)
        if not met and not state.shown.altered and poll.wait:
            member, poll = await self._long_polls.change(caller, poll)
        if member.rehearsal is not state:
            return await self._ordinary.answer(caller, poll)  # the rehearsal is over
        if not met and state.has_fault(self._now()):
            return await self._answer(caller, poll, state)  # a fault began while the request waited
        if any(fault.kind is FaultKind.EMPTY for fault in met):
            state.ledger.spoiled(state.machine, "an empty answer")
            return answers.content(b"")
        instead = state.shown.instead_of(member.group.document, met, now=self._now())
        answer = (
            self._ordinary.document(member, poll) if instead is None else self._altered(member, poll, instead)
        )
        if answer.status == OK:
            known = VERSIONS[poll.version].types
            shown = (instead or member.group.document).events
            sent = {str(event.id): _named(event) for event in shown if event.type in known}
            state.ledger.sent(state.machine, sent, now=self._now())
            if any(fault.kind is FaultKind.TEXT for fault in met):
                answer = answers.relabelled(answer, PLAIN)
        self._judge(state, member.group.document, met)
        return answer

    def _judge(self, state: RehearsalState, document: GroupDocument, met: Sequence[Fault]) -> None:
        """Record whether the document that was sent is correct."""
        now = self._now()
        for fault in met:
            hides = any(fault.hides(event, now) for event in document.events)
            if fault.kind is FaultKind.TEXT:
                state.ledger.spoiled(state.machine, PLAIN)
                return
            if hides or fault.kind is FaultKind.INCARNATION_RESTART:
                state.ledger.spoiled(state.machine, MISLEADING[fault.kind])
                return
        state.ledger.sound(state.machine, now=now)

    def _altered(self, member: BoardMachine, poll: Poll, document: GroupDocument) -> GuestAnswer:
        """Answer with an altered document; only its events count as sent."""
        etag = f"{document.incarnation}-rehearsal".encode()
        if poll.has(etag):
            return answers.not_modified(etag)
        shown = {event.id for event in document.events}
        own = [event for event in member.group.naming(member.machine.id) if event.id in shown]
        self._board.note_events(member, poll.version, own, self._times.seconds)
        body = write_document(document, VERSIONS[poll.version])
        return answers.with_header(answers.content(body), b'ETag: "%b"\r\n' % etag)

    def _now(self) -> datetime:
        self._times.refresh()
        return datetime.fromtimestamp(self._times.seconds, UTC)


def _named(event: Event) -> str:
    names = ", ".join(resource_names(event))
    return f"{event.type} of {names} ({event.status}, event {event.id[:8]})"


class GuestRehearsal:
    """The machines of one rehearsal, their faults, and the ledger of what their guests do."""

    def __init__(self, board: Board, ledger: GuestLedger) -> None:
        self._board = board
        self.ledger = ledger
        self._states: dict[MachineId, RehearsalState] = {}
        self._faults: tuple[Fault, ...] = ()

    def admit(self, machine: MachineId, name: str) -> None:
        """Add a machine; the ledger knows it by its name."""
        self.ledger.admit(name)
        state = self._states[machine] = RehearsalState(name, self.ledger)
        state.faults = self._faults
        self._board.set_rehearsal(machine, state)

    def meet(self, faults: Sequence[Fault]) -> None:
        """Inject exactly these faults from now on."""
        self._faults = tuple(faults)
        for machine, state in self._states.items():
            state.faults = self._faults
            self._board.wake_rehearsal(machine, state)

    def end(self) -> None:
        """End the rehearsal; its machines get ordinary answers again."""
        for machine, state in self._states.items():
            state.faults = ()  # releases requests that a fault delays
            self._board.set_rehearsal(machine, None)
        self._states.clear()


class RehearsalRegistry:
    """The open rehearsals of a server: at most one in each project."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._open: dict[ProjectName, GuestRehearsal] = {}

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Begin a rehearsal with these machines."""
        rehearsal = self._open[project] = GuestRehearsal(self._board, GuestLedger())
        for machine, name in machines.items():
            rehearsal.admit(machine, name)

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Inject exactly these faults from now on."""
        self._open[project].meet(faults)

    def accounts(self, project: ProjectName) -> Sequence[GuestAccount]:
        """Return what guests have done so far; an empty list if the rehearsal has ended."""
        if project not in self._open:
            return ()
        return [
            replace(account, seen=dict(account.seen), approved=dict(account.approved))
            for account in self._open[project].ledger.accounts.values()
        ]

    def close(self, project: ProjectName) -> None:
        """End the rehearsal; its machines get ordinary answers again."""
        self._open.pop(project).end()
