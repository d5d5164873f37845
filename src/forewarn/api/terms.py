"""What a request asks for beside the action, as the rules know it."""

from datetime import datetime, timedelta

from forewarn.api.bodies import HostOrderBody, MachineOrderBody, MaintenanceBody, RolloutBody
from forewarn.core.errors import Invalid
from forewarn.core.model.order import OrderTerms
from forewarn.core.model.rollout import RolloutTerms
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.policy import EXTERNAL
from forewarn.wire.operator import read_time

DEFAULT_DRIVER = "simulated"


def order_request_of(caller: str, body: HostOrderBody | None) -> OrderRequest:
    """Say who asks for what on which terms."""
    if body is None:
        return OrderRequest(by=caller)
    if body.notice_seconds is not None and body.emergency is None:
        raise Invalid("notice_seconds: expected only beside an emergency, which says why notice is shortened")
    _check_heartbeat(body.heartbeat_seconds, body.driver)
    return OrderRequest(
        by=caller,
        reason=body.reason,
        driver=body.driver or DEFAULT_DRIVER,
        terms=OrderTerms(
            emergency=body.emergency or "",
            notice=_span(body.notice_seconds),
            at_once=isinstance(body, MachineOrderBody) and body.now,
            heartbeat=_span(body.heartbeat_seconds),
            deadline=_deadline_of(body) if isinstance(body, MaintenanceBody) else None,
            expected=_span(body.expected_seconds) if isinstance(body, MaintenanceBody) else None,
            rehearsal=body.rehearsal or "",
        ),
    )


def rollout_terms_of(body: RolloutBody) -> RolloutTerms:
    """Say on what terms a rollout is asked for."""
    _check_heartbeat(body.heartbeat_seconds, body.driver)
    return RolloutTerms(
        driver=body.driver,
        heartbeat=_span(body.heartbeat_seconds),
        deadline=_deadline_of(body),
        expected=_span(body.expected_seconds),
        health=timedelta(seconds=body.health_seconds),
        require_poll=body.require_poll,
    )


def _deadline_of(body: MaintenanceBody | RolloutBody) -> datetime | None:
    try:
        return None if body.deadline is None else read_time(body.deadline)
    except Invalid as refusal:
        raise Invalid(f"deadline: {refusal}") from None


def _check_heartbeat(seconds: float | None, driver: str | None) -> None:
    if seconds is not None and driver != EXTERNAL:
        raise Invalid('heartbeat_seconds: expected only beside driver "external"')


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
