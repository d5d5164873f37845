"""Orders, events and records as rows, and back; see `fleet_rows` for the manner."""

from sqlalchemy import case, select

from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.record import Record
from forewarn.core.words import Action, ApprovalRule, EventStatus, EventType, OrderState, Source, Work
from forewarn.store import tables
from forewarn.store.rows.asked import (
    deferral_json,
    deferral_of,
    terms_json,
    terms_of,
)
from forewarn.store.rows.fleet_rows import Columns, Kept, name_key
from forewarn.store.rows.nested import (
    approvals_json,
    approvals_of,
    resources_json,
    resources_of,
    stages_json,
    stages_of,
    waiting_json,
    waiting_of,
)
from forewarn.store.rows.times import (
    micros,
    micros_or_none,
    moment,
    moment_or_none,
)

_O = tables.orders.c
ORDER_COLUMNS = (
    *(_O.id, _O.number, _O.action, _O.work, _O.source, _O.project, _O.machine, _O.machine_name, _O.host),
    *(_O.by, _O.reason, _O.driver, _O.terms, _O.state, _O.stages, _O.waiting),
    *(_O.created_at, _O.ended_at, _O.why, _O.due_at),
)

_E = tables.events.c
EVENT_COLUMNS = (
    *(_E.id, _E.number, _E.order_id, _E.stage, _E.group_name, _E.domain, _E.type, _E.status, _E.source),
    *(_E.description, _E.duration_seconds, _E.resources),
    *(_E.announced_at, _E.not_before, _E.started_at, _E.ended_at, _E.why, _E.approvals),
    *(_E.rule, _E.deferred),
)

_R = tables.records.c
# Whose an event is: while guests see it, their group's; afterwards theirs whom the announcement named.
EVENT_PROJECT = case(
    (
        _E.ended_at.is_(None),
        select(tables.groups.c.project).where(tables.groups.c.name == _E.group_name).scalar_subquery(),
    ),
    else_=select(_R.project).where(_R.number == _E.number).scalar_subquery(),
)
RECORD_COLUMNS = (
    *(_R.number, _R.at, _R.kind, _R.project, _R.group_name, _R.host, _R.machine),
    *(_R.event_id, _R.order_id, _R.by, _R.reason),
)


def order_of(row: Kept) -> Order:
    """Read an order."""
    id_, number, action, work, source, project, machine, machine_name, host, by, reason, driver, *rest = row
    terms, state, stages, waiting, created_at, ended_at, why, due_at = rest
    return Order(
        id=id_,
        number=number,
        action=Action(action),
        work=None if work is None else Work(work),
        source=Source(source),
        project=project,
        machine=machine,
        machine_name=machine_name,
        host=host,
        by=by,
        reason=reason,
        driver=driver,
        terms=terms_of(terms),
        state=OrderState(state),
        stages=stages_of(stages),
        waiting=waiting_of(waiting),
        created_at=moment(created_at),
        ended_at=moment_or_none(ended_at),
        why=why,
        due_at=moment_or_none(due_at),
    )


def order_row(order: Order) -> Columns:
    """Write an order; one that is over is never due."""
    return {
        "id": order.id.upper(),
        "number": order.number,
        "action": order.action.value,
        "work": None if order.work is None else order.work.value,
        "source": order.source.value,
        "project": order.project,
        "machine": order.machine,
        "machine_name": order.machine_name,
        "host": order.host,
        "by": order.by,
        "reason": order.reason,
        "driver": order.driver,
        "terms": terms_json(order.terms),
        "state": order.state.value,
        "stages": stages_json(order.stages),
        "waiting": waiting_json(order.waiting),
        "created_at": micros(order.created_at),
        "ended_at": micros_or_none(order.ended_at),
        "why": order.why,
        "due_at": micros_or_none(order.due_at) if order.open else None,
    }


def event_of(row: Kept) -> Event:
    """Read an event."""
    id_, number, order, stage, group, domain, type_, status, source, description, duration, *rest = row
    resources, announced_at, not_before, started_at, ended_at, why, approvals, rule, deferred = rest
    return Event(
        id=id_,
        number=number,
        order=order,
        stage=stage,
        group=group,
        update_domain=domain,
        type=EventType(type_),
        status=EventStatus(status),
        source=Source(source),
        description=description,
        duration_seconds=duration,
        resources=resources_of(resources),
        announced_at=moment(announced_at),
        not_before=moment(not_before),
        started_at=moment_or_none(started_at),
        ended_at=moment_or_none(ended_at),
        why=why,
        approvals=approvals_of(approvals),
        rule=ApprovalRule(rule),
        deferred=deferral_of(deferred),
    )


def event_row(event: Event) -> Columns:
    """Write an event."""
    return {
        "id": event.id.upper(),
        "number": event.number,
        "order_id": event.order.upper(),
        "stage": event.stage,
        "group_name": event.group,
        "domain": event.update_domain,
        "type": event.type.value,
        "status": event.status.value,
        "source": event.source.value,
        "description": event.description,
        "duration_seconds": event.duration_seconds,
        "resources": resources_json(event.resources),
        "announced_at": micros(event.announced_at),
        "not_before": micros(event.not_before),
        "started_at": micros_or_none(event.started_at),
        "ended_at": micros_or_none(event.ended_at),
        "why": event.why,
        "approvals": approvals_json(event.approvals),
        "rule": event.rule.value,
        "deferred": deferral_json(event.deferred),
    }


def record_of(row: Kept) -> Record:
    """Read a record."""
    number, at, kind, project, group, host, machine, event, order, by, reason = row
    return Record(
        number=number,
        at=moment(at),
        kind=kind,
        project=project,
        group=group,
        host=host,
        machine=machine,
        event=event,
        order=order,
        by=by,
        reason=reason,
    )


def record_row(record: Record) -> Columns:
    """Write a record."""
    return {
        "number": record.number,
        "at": micros(record.at),
        "kind": str(record.kind),
        "project": record.project,
        "group_name": record.group,
        "host": record.host,
        "machine": record.machine,
        "machine_key": None if record.machine is None else name_key(record.machine),
        "event_id": None if record.event is None else record.event.upper(),
        "order_id": None if record.order is None else record.order.upper(),
        "by": record.by,
        "reason": record.reason,
    }
