"""What a request asks for beside the action, as the rules know it."""

from datetime import timedelta

from forewarn.api.bodies import HostOrderBody, MachineOrderBody
from forewarn.core.errors import Invalid
from forewarn.core.model import Terms
from forewarn.core.orders import Mandate
from forewarn.core.policy import EXTERNAL

DEFAULT_DRIVER = "simulated"


def mandate_of(caller: str, body: HostOrderBody | None) -> Mandate:
    """Say who asks for what on which terms."""
    if body is None:
        return Mandate(by=caller)
    if body.notice_seconds is not None and body.emergency is None:
        raise Invalid("notice_seconds: expected only beside emergency, which says why notice is shortened")
    if body.heartbeat_seconds is not None and body.driver != EXTERNAL:
        raise Invalid('heartbeat_seconds: expected only beside driver "external"')
    return Mandate(
        by=caller,
        reason=body.reason,
        driver=body.driver or DEFAULT_DRIVER,
        terms=Terms(
            emergency=body.emergency or "",
            notice=_span(body.notice_seconds),
            at_once=isinstance(body, MachineOrderBody) and body.now,
            heartbeat=_span(body.heartbeat_seconds),
        ),
    )


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
