"""The mappings of all stored classes, and the fields whose column or key has another name or form."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from forewarn.core.access import Token
from forewarn.core.basic_types import Work
from forewarn.core.catalogue import WORKS
from forewarn.core.model.clock_slew import Absence, Slew, TimeKind
from forewarn.core.model.constraints import Grace, Hold, Waiting
from forewarn.core.model.declaration import NO_DEFAULTS, FleetDefaults
from forewarn.core.model.event import Event, NoticeSummary, Resource
from forewarn.core.model.footprint import NO_MOVES, MovePace
from forewarn.core.model.group import Group, GroupPolicy
from forewarn.core.model.host import RACK, Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import HostStep, Order, OrderTerms, Stage, Step
from forewarn.core.model.project import Project
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import NO_FAILURE, FailureLimit, Rollout, RolloutTerms, Wave
from forewarn.core.rehearsal_rules import SavedRehearsal
from forewarn.core.retention import Pruning
from forewarn.core.session_cookies import BrowserSession
from forewarn.core.webhook_rules import Webhook
from forewarn.store import tables
from forewarn.store.rows.mapping import Columns, Mapped, Row, mapped, micros, micros_or_none, moment
from forewarn.wire.codec import Codec, Shape
from forewarn.wire.projects import read_project, write_project

_MICROSECOND = timedelta(microseconds=1)
_SHAPES = {
    Machine: Shape(keys={"group": "group_name"}),
    Step: Shape(
        keys={"update_domain": "domain"},
        optional=(
            *("taken_up_at", "unknown_at", "mark", "progress", "refused", "too_late", "impact"),
            *("failures", "failed_on", "lowered_from", "again_at", "precheck", "withdrawals"),
        ),
    ),
    HostStep: Shape(
        optional=("taken_up_at", "unknown_at", "mark", "progress", "too_late", "back_by", "host_was")
    ),
    Stage: Shape(optional=("kind",)),
    Resource: Shape(optional=("late",)),
    Event: Shape(keys={"order": "order_id", "group": "group_name", "update_domain": "domain"}),
    Record: Shape(keys={"order": "order_id", "event": "event_id", "group": "group_name"}),
    Wave: Shape(optional=("undone",)),
    Rollout: Shape(keys={"abandoned": "given_up"}, optional=("drivers", "alike")),
    GroupPolicy: Shape(
        optional=("notice", "terminate_notice", "degrade_notice", "freezes_at_once", "gang"),
        empty=GroupPolicy(),
    ),
    OrderTerms: Shape(
        optional=(
            *("notice", "heartbeat", "deadline", "expected", "paused", "rollout", "rehearsal"),
            *("whole", "together", "abandoned_by", "stopped_by", "stopped_because", "winding_down"),
            *("mode", "returning", "host_driver", "fenced", "despite_hold", "driver_chooses", "homes", "to"),
        ),
        empty=OrderTerms(),
    ),
    FleetDefaults: Shape(optional=("driver",), empty=NO_DEFAULTS),
    RolloutTerms: Shape(
        optional=(
            *("whole", "together", "canary", "soak", "max_failures"),
            *("mode", "returning", "host_driver"),
        )
    ),
    FailureLimit: Shape(optional=("amount", "percent"), empty=NO_FAILURE),
    MovePace: Shape(optional=("expected", "taken"), empty=NO_MOVES),
    Waiting: Shape(optional=("stuck", "room", "outside", "until")),
}
_TIME = (micros, moment)
_SECONDS = (timedelta.total_seconds, lambda seconds: timedelta(seconds=seconds))
_MICROS = (lambda span: span // _MICROSECOND, lambda count: count * _MICROSECOND)


def _write_notice(notice: NoticeSummary) -> list[int | None]:
    least = None if notice.least is None else notice.least // _MICROSECOND
    return [least, notice.late, notice.never]


def _read_notice(json: list[Any]) -> NoticeSummary:
    least, late, never = json
    return NoticeSummary(least=None if least is None else least * _MICROSECOND, late=late, never=never)


STORED = Codec({datetime: _TIME, timedelta: _SECONDS}, shapes=_SHAPES)
_ROLLOUT = Codec(
    {datetime: _TIME, timedelta: _MICROS, NoticeSummary: (_write_notice, _read_notice)}, shapes=_SHAPES
)
# Fields without a column of their own are stored with the terms.
_KEPT_IN_TERMS = ("drivers", "alike", "excused", "version", "last_change")


def name_key(name: str) -> str:
    """Return the case-folded name: names are compared without regard to case."""
    return name.casefold()


def _write_project(project: Project) -> Columns:
    return {"name": project.name, "settings": write_project(project), "source": project.source}


def _read_rollout(row: Row) -> Rollout:
    written = dict(zip(tables.rollouts.columns.keys(), row, strict=False))
    return _ROLLOUT.read(Rollout, written["terms"] | written)


def _write_rollout(rollout: Rollout) -> Columns:
    row: Columns = _ROLLOUT.write(rollout)
    beside_terms = {key: row.pop(key) for key in _KEPT_IN_TERMS if key in row}
    return row | {
        "id": rollout.id.upper(),
        "terms": row["terms"] | beside_terms,
        "due_at": row["due_at"] if rollout.open else None,
    }


_ORDERS = mapped(
    Order,
    tables.orders,
    STORED,
    derived={
        "id": lambda order: order.id.upper(),
        "due_at": lambda order: micros_or_none(order.due_at) if order.open else None,
    },
)
_WORK, _STAGES = (STORED.keys(Order).index(key) for key in ("work", "stages"))


def _read_order(row: Row) -> Order:
    """Read an order; a step has its own work only if it differs from that of the order."""
    defaults, columns = _step_defaults(row[_WORK]), list(row)
    columns[_STAGES] = [
        stage | {"steps": [defaults | step for step in stage["steps"]]} for stage in row[_STAGES]
    ]
    return _ORDERS.read(columns)


def _write_order(order: Order) -> Columns:
    row = _ORDERS.write(order)
    defaults = _step_defaults(row["work"])
    for step in (step for stage in row["stages"] for step in stage["steps"]):
        if {"work": step["work"], "moves": step["moves"]} == defaults:
            del step["work"], step["moves"]
    return row


def _step_defaults(work: str | None) -> dict[str, Any]:
    return {} if work is None else {"work": work, "moves": WORKS[Work(work)].moves}


PROJECTS = Mapped(
    table=tables.projects,
    columns=(tables.projects.c.name, tables.projects.c.settings, tables.projects.c.source),
    read=lambda row: replace(read_project(row[0], row[1], f"projects.{row[0]}: "), source=row[2]),
    write=_write_project,
)
HOSTS = mapped(Host, tables.hosts, STORED, derived={"rack": lambda host: host.labels.get(RACK)})
HOLDS = mapped(Hold, tables.holds, STORED, derived={"id": lambda hold: hold.id.upper()})
GROUPS = mapped(Group, tables.groups, STORED, distinct=("name",))
MACHINES = mapped(
    Machine,
    tables.machines,
    STORED,
    derived={
        "id": lambda machine: machine.id.lower(),
        "key": lambda machine: name_key(machine.name),
        "place": lambda machine: machine.destination,
    },
    distinct=("id", "name", "address", "mac"),
)
ORDERS = replace(_ORDERS, read=_read_order, write=_write_order)
EVENTS = mapped(
    Event,
    tables.events,
    STORED,
    derived={"id": lambda event: event.id.upper(), "order_id": lambda event: event.order.upper()},
)
RECORDS = mapped(
    Record,
    tables.records,
    STORED,
    derived={
        "kind": lambda record: str(record.kind),  # not an enum
        "machine_key": lambda record: record.machine and name_key(record.machine),
        "event_id": lambda record: record.event and record.event.upper(),
        "order_id": lambda record: record.order and record.order.upper(),
    },
)
ROLLOUTS = Mapped(
    table=tables.rollouts,
    columns=tuple(tables.rollouts.columns),
    read=_read_rollout,
    write=_write_rollout,
)
TOKENS = mapped(Token, tables.tokens, STORED)
SESSIONS = mapped(BrowserSession, tables.sessions, STORED, distinct=("digest",))
REHEARSALS = mapped(SavedRehearsal, tables.rehearsals, STORED)
WEBHOOKS = mapped(Webhook, tables.webhooks, STORED, derived={"id": lambda webhook: webhook.id.upper()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """The row of the store as a whole; see the table."""

    number: int
    reached: datetime | None
    present_at: datetime | None
    system_at: datetime | None
    beats: int
    absences: tuple[Absence, ...]
    time_kind: TimeKind | None
    backup_of: datetime | None
    grace_until: datetime | None
    grace_announced_before: datetime | None
    applied_fleet: str | None
    defaults: FleetDefaults
    lineage: str
    pruned: int
    pruned_unsaid: int
    prune_at: datetime | None
    session_changes: int
    settings_version: str
    blocked_rollouts: int
    forgotten: int
    pace: MovePace

    @property
    def grace(self) -> Grace | None:
        """Until when unapproved starts are deferred."""
        if self.grace_until is None or self.grace_announced_before is None:
            return None
        return Grace(until=self.grace_until, announced_before=self.grace_announced_before)

    @property
    def slew(self) -> Slew | None:
        """How far service time is ahead of the system clock, if it is."""
        if self.present_at is None or self.system_at is None:
            return None
        return Slew(at=self.present_at, system=self.system_at)

    @property
    def pruning(self) -> Pruning:
        """How far old records are pruned."""
        return Pruning(up_to=self.pruned, unreported=self.pruned_unsaid, next_at=self.prune_at)


META = mapped(Meta, tables.meta, STORED)
