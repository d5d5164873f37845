"""Endpoints of rehearsals: begin, show and end one."""

from datetime import datetime

from forewarn.api.inputs import ProjectInPath
from forewarn.api.order_bodies import DAY
from forewarn.api.request_fields import LARGEST, MACHINE, NAME, TIME, one_of, seconds, whole
from forewarn.api.request_models import Body, Query, field, nullable, request_model
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading, Service
from forewarn.control.rehearsals.open_rehearsals import Rehearsal
from forewarn.control.rehearsals.rehearsal_use_cases import RehearsalView
from forewarn.control.use_case import ExclusiveJob
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
from forewarn.wire.fields import several

router = ApiRouter("rehearsals")

PATH = "/v1/projects/{name}/rehearsal"


@request_model
class FaultBody(Body):
    """A fault of the guest endpoint."""

    number: int = field(
        whole(minimum=0, maximum=LARGEST), "Identifies the fault, so that `calls` is counted across requests."
    )
    kind: FaultKind = field(one_of(FaultKind), "Fault of the guest endpoint.")
    machines: tuple[MachineName, ...] = field(
        several(MACHINE, most=1000), "Machines that see the fault. Default: all.", default=()
    )
    since: datetime | None = nullable(TIME, "When the fault begins, in service time. Default: at once.")
    until: datetime | None = nullable(
        TIME, "When the fault ends, in service time. Default: with the rehearsal."
    )
    calls: int | None = nullable(
        whole(minimum=1, maximum=LARGEST),
        "Maximum number of affected requests of each machine. Default: no maximum.",
    )
    delay_seconds: float = field(
        seconds(minimum=0, maximum=DAY), "Delay of a slow answer.", default=SLOW.total_seconds()
    )
    notice_seconds: float = field(
        seconds(minimum=0, maximum=30 * DAY),
        "Notice that a short notice shows.",
        default=SHORT_NOTICE.total_seconds(),
    )


@request_model
class RehearsalBody(Body):
    """A rehearsal."""

    id: str = field(NAME, "Id that you choose. Send the same id to keep the rehearsal running.")
    scenario: str = field(NAME, "Name of the scenario.")
    machines: tuple[MachineName, ...] = field(
        several(MACHINE, least=1, most=1000), "Machines whose guests take part."
    )
    faults: tuple[FaultBody, ...] = field(
        several(FaultBody.part(), most=100), "Faults of the guest endpoint.", default=()
    )


@request_model
class RehearsalQuery(Query):
    """Which rehearsal to end."""

    id: str | None = nullable(NAME, "End only the rehearsal with this id. If another one runs: 404.")


@router.call(f"GET {PATH}", "Show a rehearsal", right=Right.SEE)
def show_rehearsal(name: ProjectInPath, reads: CallerReading) -> RehearsalAnswer:
    """Return the running rehearsal of a project, with what the guests have done so far."""
    return _shown(reads.rehearsals.show(name))


@router.call(f"PUT {PATH}", "Begin or continue a rehearsal", right=Right.USE)
async def play_rehearsal(name: ProjectInPath, body: RehearsalBody, service: Service) -> RehearsalAnswer:
    """Run a scenario on machines of a project that allows rehearsals.

    Repeat the request to keep the rehearsal running. It ends by itself 30 seconds after the last one.
    """
    wanted = body.build(Rehearsal, faults=tuple(each.build(Fault) for each in body.faults))

    def play(transact: Transact) -> RehearsalView:
        return service.rehearsals.play(transact, service.scope, name, wanted, by=service.by)

    return _shown(await service.run_unscoped(ExclusiveJob(play)))


@router.call(f"DELETE {PATH}", "End a rehearsal", right=Right.USE)
async def end_rehearsal(name: ProjectInPath, query: RehearsalQuery, service: Service) -> EndedRehearsalAnswer:
    """End a rehearsal: its faults stop, and its orders that have not started are cancelled."""

    def end(transact: Transact) -> RehearsalView:
        return service.rehearsals.end(transact, service.scope, name, only=query.id, by=service.by)

    ended = await service.run_unscoped(ExclusiveJob(end))
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
