"""Rehearsals: whose guests have a part in one, what they meet, and what they have done."""

from datetime import datetime

from forewarn.api.bodies import DAY
from forewarn.api.inputs import ProjectInPath
from forewarn.api.request_fields import LARGEST, MACHINE, NAME, TIME, one_of, seconds, several, whole
from forewarn.api.request_parts import Body, Query, declared, given, maybe
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, CallerReading, Service
from forewarn.control.rehearsals.open_rehearsals import Rehearsal
from forewarn.control.rehearsals.rehearsal_use_cases import RehearsalView
from forewarn.control.use_case import Alone
from forewarn.core.access import Right
from forewarn.core.basic_types import MachineName
from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.core.rehearsal_rules import SHORT_NOTICE, SLOW, Fault, FaultKind
from forewarn.store.batch import Transact
from forewarn.wire.answers.rehearsal_answers import (
    ApprovedEventAnswer,
    EndedRehearsalAnswer,
    FaultAnswer,
    RehearsalAnswer,
    RehearsingGuestAnswer,
    SeenEventAnswer,
)

router = ApiRouter("rehearsals")

PATH = "/v1/projects/{name}/rehearsal"


@declared
class FaultBody(Body):
    """What guests meet instead of the answer that is due, and when."""

    number: int = given(whole(minimum=0, maximum=LARGEST), "Tells faults apart; calls are counted by it.")
    kind: FaultKind = given(one_of(FaultKind))
    machines: tuple[MachineName, ...] = given(several(MACHINE, most=1000), "Whose; none: all.", default=())
    since: datetime | None = maybe(TIME, "Service time (RFC 3339); left out: at once.")
    until: datetime | None = maybe(TIME, "Left out: to the end.")
    calls: int | None = maybe(whole(minimum=1, maximum=LARGEST), "Of each machine that it spoils at most.")
    delay_seconds: float = given(
        seconds(minimum=0, maximum=DAY), "Of a slow answer.", default=SLOW.total_seconds()
    )
    notice_seconds: float = given(
        seconds(minimum=0, maximum=30 * DAY),
        "Left when a short notice is shown.",
        default=SHORT_NOTICE.total_seconds(),
    )


@declared
class RehearsalBody(Body):
    """What is played, by whose guests, and what these meet."""

    id: str = given(NAME, "Made by the caller, and given again each time.")
    scenario: str = given(NAME)
    machines: tuple[MachineName, ...] = given(
        several(MACHINE, least=1, most=1000), "Whose guests have a part."
    )
    faults: tuple[FaultBody, ...] = given(several(FaultBody.part(), most=100), default=())


@declared
class RehearsalQuery(Query):
    """Which rehearsal."""

    id: str | None = maybe(NAME, "Only if it is this one; 404 otherwise.")


@router.call(f"GET {PATH}", "Show a rehearsal", right=Right.SEE, errors=(404,))
def show_rehearsal(name: ProjectInPath, reads: CallerReading) -> RehearsalAnswer:
    """Show what is being played in a project, and what the guests have done so far."""
    return _shown(reads.rehearsals.show(name))


@router.call(f"PUT {PATH}", "Begin a rehearsal, or go on with it", right=Right.USE, errors=(404, 409, 413))
async def play_rehearsal(
    name: ProjectInPath, body: RehearsalBody, service: Service, caller: CallerName
) -> RehearsalAnswer:
    """Give guests of a project for rehearsals a part; it ends by itself unless asked for again in 30 s."""
    faults = tuple(each.asked(Fault) for each in body.faults)
    wanted = body.asked(Rehearsal, faults=faults)

    def play(transact: Transact) -> RehearsalView:
        return service.rehearsals.play(transact, service.scope, name, wanted, by=caller)

    return _shown(await service.run_unscoped(Alone(play)))


@router.call(f"DELETE {PATH}", "End a rehearsal", right=Right.USE, errors=(404,))
async def end_rehearsal(
    name: ProjectInPath, query: RehearsalQuery, service: Service, caller: CallerName
) -> EndedRehearsalAnswer:
    """Answer all guests as ever again, and cancel what was ordered and has not begun."""

    def end(transact: Transact) -> RehearsalView:
        return service.rehearsals.end(transact, service.scope, name, only=query.id, by=caller)

    ended = await service.run_unscoped(Alone(end))
    return EndedRehearsalAnswer(rehearsal=_shown(ended), called_off=tuple(ended.cancelled))


def _shown(view: RehearsalView) -> RehearsalAnswer:
    return RehearsalAnswer.like(
        view.rehearsal,
        view,
        faults=tuple(FaultAnswer.of(fault, now=view.now) for fault in view.rehearsal.faults),
        guests=tuple(map(_guest, view.accounts)),
    )


def _guest(account: GuestAccount) -> RehearsingGuestAnswer:
    return RehearsingGuestAnswer.like(
        account,
        seen=tuple(SeenEventAnswer.like(sighting, event=id_) for id_, sighting in account.seen.items()),
        approved=tuple(ApprovedEventAnswer(event=id_, at=at) for id_, at in account.approved.items()),
    )
