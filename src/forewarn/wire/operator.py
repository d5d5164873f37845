"""What operators and users are shown: values of the model as JSON, with snake_case keys.

Times are RFC 3339 with Z. What is not known is null, never missing.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from forewarn.core.access import Token
from forewarn.core.admission.holds import reach
from forewarn.core.errors import Invalid
from forewarn.core.guests.document import resource_names
from forewarn.core.guests.notice import MachineNotice
from forewarn.core.model.event import Approval, Deferral, Event, NoticeSummary
from forewarn.core.model.group import Group
from forewarn.core.model.hold import Hold
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Stage, Step
from forewarn.core.model.project import Project
from forewarn.core.model.record import Record
from forewarn.core.model.waiting import Waiting
from forewarn.core.model.webhook import Webhook
from forewarn.core.orders import events
from forewarn.core.rehearsal.faults import Fault
from forewarn.core.words import STANDALONE, GroupKind, GroupName
from forewarn.wire.fleet import write_policy
from forewarn.wire.projects import write_project


def time(moment: datetime) -> str:
    """Write a moment, with a fraction of a second only where there is one."""
    written = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{written.rstrip('0') if '.' in written else written}Z"


def read_time(text: str) -> datetime:
    """Read a moment; one without an offset could be anywhere's, so it is refused."""
    # In a query an offset's plus sign arrives as a blank when it was not escaped.
    given = text.replace(" ", "+") if "T" in text.upper() else text
    try:
        moment = datetime.fromisoformat(given)
        utc = moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        utc = None
    if utc is None:
        raise Invalid(f"expected a time such as 2026-01-31T12:00:00Z, got {text!r}")
    return utc


def machine(machine_: Machine, group_: Group, last_seen: datetime | None) -> dict[str, object]:
    """Show a machine, and what its guests have made known."""
    return {
        "vm_id": machine_.id,
        "name": machine_.name,
        "project": machine_.project,
        "group": None if group_.kind is GroupKind.STANDALONE else group_.name,
        "host": machine_.host,
        "update_domain": machine_.update_domain,
        "fault_domain": machine_.fault_domain,
        "priority": machine_.priority.value,
        "state": machine_.state.value,
        "network": machine_.network,
        "address": machine_.address,
        "port": machine_.port,
        "tags": dict(machine_.tags),
        "location": machine_.location,
        "zone": machine_.zone,
        "size": machine_.size,
        "os": machine_.os,
        "enabled": group_.enabled,
        "last_seen": time_or_null(last_seen),
    }


def group(group_: Group) -> dict[str, object]:
    """Show a group."""
    return {
        "name": group_.name,
        "project": group_.project,
        "kind": group_.kind.value,
        "update_domains": group_.update_domains,
        "incarnation": group_.incarnation,
        "enabled": group_.enabled,
        "enabled_at": time_or_null(group_.enabled_at),
        "policy": write_policy(group_.policy),
    }


def hold(hold_: Hold) -> dict[str, object]:
    """Show a hold, and in words where it reaches."""
    return {
        "id": hold_.id,
        "reach": reach(hold_),
        "project": hold_.project,
        "host": hold_.host,
        "reason": hold_.reason,
        "by": hold_.by,
        "at": time(hold_.at),
    }


def host(host_: Host, machines: Sequence[Machine] | None = None) -> dict[str, object]:
    """Show a host and, if they are given, the names of the machines it carries, and whose they are."""
    shown: dict[str, object] = {"name": host_.name, "state": host_.state.value}
    if machines is not None:
        shown["machines"] = [each.name for each in machines]
        shown["projects"] = sorted({each.project for each in machines})
    return shown


def project(project_: Project) -> dict[str, object]:
    """Show a project, with what it leaves to its default."""
    declared = {"time_zone": "UTC", "windows": [], "blackout": [], "rehearsal": False}
    return {"name": project_.name, **declared, **write_project(project_)}


def fault(fault_: Fault) -> dict[str, object]:
    """Show a fault of a rehearsal."""
    return {
        "number": fault_.number,
        "kind": fault_.kind.value,
        "machines": list(fault_.machines),
        "since": time_or_null(fault_.since),
        "until": time_or_null(fault_.until),
        "calls": fault_.calls,
        "delay_seconds": fault_.delay.total_seconds(),
        "notice_seconds": fault_.notice.total_seconds(),
    }


def event(event_: Event) -> dict[str, object]:
    """Show an event; NotBefore stays known after the start."""
    return {
        "id": event_.id,
        "type": event_.type.value,
        "status": event_.status.value,
        "resources": list(resource_names(event_)),
        "not_before": time(event_.not_before),
        "source": event_.source.value,
        "description": event_.description,
        "duration_seconds": event_.duration_seconds,
        "approved": event_.approved,
        "approval": event_.rule.value,
        "awaited": list(event_.awaited),
        "awaits": events.awaits(event_) or None,
        "approvals": [_approval(each) for each in event_.approvals],
        "deferred": _deferral(event_.deferred) if event_.deferred else None,
        "group": _listed_group(event_.group),
        "update_domain": event_.update_domain,
        "order": event_.order,
        "announced_at": time(event_.announced_at),
        "started_at": time_or_null(event_.started_at),
        "ended_at": time_or_null(event_.ended_at),
        "why": event_.why or None,
    }


def noted_event(
    event_: Event, notices: Iterable[MachineNotice], impact: timedelta | None
) -> dict[str, object]:
    """Show an event, what notice each of its machines got, and how long it disturbed them."""
    return event(event_) | {
        "notices": [_machine_notice(each) for each in notices],
        "impact_seconds": seconds_or_null(impact),
    }


def noted_order(order_: Order, notice: NoticeSummary) -> dict[str, object]:
    """Show an order, and what notice all its machines got."""
    return order(order_) | {"notice": notice_summary(notice)}


def notice_summary(notice: NoticeSummary) -> dict[str, object]:
    """Show what notice machines got."""
    return {"least_seconds": seconds_or_null(notice.least), "late": notice.late, "never": notice.never}


def order(order_: Order) -> dict[str, object]:
    """Show an order, with what it waits for and how far each machine is."""
    return {
        "id": order_.id,
        "action": order_.action.value,
        "work": order_.work.value if order_.work else None,
        "source": order_.source.value,
        "project": order_.project,
        "machine": order_.machine_name,
        "host": order_.host,
        "state": order_.state.value,
        "by": order_.by,
        "reason": order_.reason or None,
        "driver": order_.driver,
        "emergency": order_.terms.emergency or None,
        "heartbeat_seconds": seconds_or_null(order_.terms.heartbeat),
        "deadline": time_or_null(order_.terms.deadline),
        "expected_seconds": seconds_or_null(order_.terms.expected),
        "rollout": order_.terms.rollout,
        "rehearsal": order_.terms.rehearsal or None,
        "created_at": time(order_.created_at),
        "ended_at": time_or_null(order_.ended_at),
        "why": order_.why or None,
        "waiting": [_waiting(each) for each in order_.waiting],
        "stages": [_stage(each) for each in order_.stages],
        "steps": [_step(each) for each in order_.steps],
    }


def record(record_: Record) -> dict[str, object]:
    """Show a line of the history."""
    return {
        "number": record_.number,
        "at": time(record_.at),
        "kind": str(record_.kind),
        "project": record_.project,
        "group": _listed_group(record_.group) if record_.group else None,
        "host": record_.host,
        "machine": record_.machine,
        "event": record_.event,
        "order": record_.order,
        "by": record_.by or None,
        "reason": record_.reason or None,
    }


def webhook(webhook_: Webhook, *, behind: int, next_try: float | None) -> dict[str, object]:
    """Show a webhook without its secret; the next try is in so many real seconds."""
    return {
        "id": webhook_.id,
        "url": webhook_.url,
        "project": webhook_.project,
        "owner": webhook_.owner,
        "kinds": sorted(kind.value for kind in webhook_.kinds),
        "by": webhook_.by,
        "created_at": time(webhook_.created_at),
        "delivered": webhook_.delivered,
        "behind": behind,
        "failures": webhook_.failures,
        "failing_since": time_or_null(webhook_.failing_since),
        "error": webhook_.error or None,
        "next_try_seconds": None if next_try is None else round(next_try, 1),
    }


def token(token_: Token) -> dict[str, object]:
    """Show a token; its secret is not known."""
    return {
        "name": token_.name,
        "role": token_.role.value,
        "project": token_.project,
        "created_at": time(token_.created_at),
        "created_by": token_.created_by,
        "expires_at": time_or_null(token_.expires_at),
        "revoked_at": time_or_null(token_.revoked_at),
    }


def _approval(approval: Approval) -> dict[str, object]:
    return {
        "by": approval.by,
        "kind": approval.kind.value,
        "at": time(approval.at),
        "address": approval.address or None,
    }


def _deferral(deferral: Deferral) -> dict[str, object]:
    return {
        "by": deferral.by,
        "at": time(deferral.at),
        "until": time(deferral.until),
        "asked_seconds": seconds_or_null(deferral.asked),
        "granted_seconds": seconds_or_null(deferral.granted),
    }


def _machine_notice(notice: MachineNotice) -> dict[str, object]:
    return {
        "machine": notice.machine,
        "sent_at": time_or_null(notice.sent_at),
        "notice_seconds": seconds_or_null(notice.notice),
        "late": notice.late,
    }


def _waiting(waiting: Waiting) -> dict[str, object]:
    return {"what": waiting.what, "reason": waiting.reason}


def _stage(stage: Stage) -> dict[str, object]:
    return {
        "state": stage.state.value,
        "started_at": time_or_null(stage.started_at),
        "steps": [_step(each) for each in stage.steps],
    }


def _step(step: Step) -> dict[str, object]:
    return {
        "machine": step.name,
        "state": step.state.value,
        "attempt": step.attempt,
        "target": step.target,
        "begun_at": time_or_null(step.begun_at),
        "ended_at": time_or_null(step.ended_at),
        "why": step.why or None,
    }


def _listed_group(name: GroupName) -> GroupName | None:
    return None if name.startswith(STANDALONE) else name


def time_or_null(moment: datetime | None) -> str | None:
    """Write a moment that may not have come."""
    return None if moment is None else time(moment)


def seconds_or_null(span: timedelta | None) -> float | None:
    """Show a span in seconds, or that there is none."""
    return None if span is None else span.total_seconds()
