"""What is going to be done, and what guests are told of it: orders, events, rollouts, holds."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    false,
    literal_column,
)

from forewarn.core.basic_types import HINTS
from forewarn.store.tables.columns import NAME, TIME, index_where, is_open, metadata, while_open

orders = Table(
    "orders",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("action", Text, nullable=False),
    Column("work", Text),
    Column("source", Text, nullable=False),
    Column("project", NAME),
    Column("machine", NAME),
    Column("machine_name", NAME),
    Column("host", NAME),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("driver", Text, nullable=False),
    Column("terms", JSON, nullable=False, server_default="{}"),
    Column("state", Text, nullable=False),
    Column("stages", JSON, nullable=False),
    Column("host_steps", JSON, nullable=False, server_default="[]"),
    Column("waiting", JSON, nullable=False),
    Column("created_at", TIME, nullable=False),
    Column("announced_at", TIME),
    Column("withdrawals", Integer, nullable=False, server_default="0"),
    Column("ended_at", TIME),
    Column("why", Text, nullable=False),
    Column("due_at", TIME),
    Column("heard_at", TIME),  # in real time
    Index("orders_number", "number", "id"),
    Index("orders_state", "state", "number", "id"),
    Index("orders_project", "project", "number", "id"),
)
OPEN_ORDER: ColumnElement[bool] = orders.c.ended_at.is_(None)
index_where("orders_open", orders.c.state, orders.c.source, orders.c.project, only=OPEN_ORDER)
IS_OPEN_ORDER = is_open(orders.c.ended_at)
HOST_OF_OPEN_ORDER = while_open(orders.c.ended_at, orders.c.host)
Index("orders_host", HOST_OF_OPEN_ORDER)
index_where("orders_ever_on", orders.c.host, only=orders.c.host.is_not(None))
index_where("orders_due", orders.c.due_at, orders.c.number, only=orders.c.due_at.is_not(None))

# Which machines an open order is still about: its events may name those it is done with.
order_machines = Table(
    "order_machines",
    metadata,
    Column("machine_id", NAME, nullable=False),
    Column("order_id", NAME, nullable=False),
    PrimaryKeyConstraint("machine_id", "order_id"),
    Index("order_machines_order", "order_id"),
)

# For which groups' events an open order waits.
order_waits = Table(
    "order_waits",
    metadata,
    Column("group_name", NAME, nullable=False),
    Column("order_id", NAME, nullable=False),
    PrimaryKeyConstraint("group_name", "order_id"),
    Index("order_waits_order", "order_id"),
)

events = Table(
    "events",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("order_id", NAME, nullable=False),
    Column("stage", Integer, nullable=False),
    Column("group_name", NAME, nullable=False),
    Column("domain", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("duration_seconds", BigInteger, nullable=False),
    Column("resources", JSON, nullable=False),
    Column("announced_at", TIME, nullable=False),
    Column("not_before", TIME, nullable=False),
    Column("armed_at", TIME),
    Column("started_at", TIME),
    Column("ended_at", TIME),
    Column("why", Text, nullable=False),
    Column("approvals", JSON, nullable=False),
    Column("rule", Text, nullable=False, server_default="any"),
    Column("deferred", JSON(none_as_null=True)),
    Column("postponed", JSON(none_as_null=True)),
    # Whether what became of its promise of notice is counted.
    Column("judged", Boolean, nullable=False, server_default=false()),
    # Whether its rows in the next two tables are gone with its records.
    Column("forgotten", Boolean, nullable=False, server_default=false()),
    Index("events_order", "order_id"),
    Index("events_created", "number", "id"),
)
LISTED_EVENT: ColumnElement[bool] = events.c.ended_at.is_(None)
# What rules count: not what only recommends something. Literal, for SQLite's partial indexes.
_HINTS = ", ".join(f"'{type_}'" for type_ in sorted(HINTS))
COUNTED_TYPE: ColumnElement[bool] = literal_column(f"events.type NOT IN ({_HINTS})")
COUNTED_EVENT = LISTED_EVENT & COUNTED_TYPE
IS_LISTED_EVENT = is_open(events.c.ended_at)
GROUP_OF_LISTED_EVENT = while_open(events.c.ended_at, events.c.group_name)
index_where("events_ended", events.c.ended_at, only=events.c.ended_at.is_not(None))
Index("events_group", GROUP_OF_LISTED_EVENT, events.c.domain)
index_where("events_number", events.c.number, events.c.id, only=LISTED_EVENT)
index_where("events_status", events.c.status, events.c.not_before, only=LISTED_EVENT)

# Which machines an event named when it was announced: what happened to it happened to them.
event_machines = Table(
    "event_machines",
    metadata,
    Column("machine_key", NAME, nullable=False),
    Column("event_id", NAME, nullable=False),
    PrimaryKeyConstraint("machine_key", "event_id"),
    Index("event_machines_event", "event_id"),
)

# When a machine was first sent a document with an event in it.
notices = Table(
    "notices",
    metadata,
    Column("event_id", NAME, nullable=False),
    Column("machine_id", NAME, nullable=False),
    Column("sent_at", TIME, nullable=False),
    PrimaryKeyConstraint("event_id", "machine_id"),
)

rollouts = Table(
    "rollouts",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("work", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("hosts", JSON, nullable=False),
    Column("hosts_at_once", Integer, nullable=False),
    Column("gap", TIME, nullable=False),
    Column("aborting", Boolean, nullable=False),
    Column("waves", JSON, nullable=False),
    Column("given_up", JSON, nullable=False),
    Column("waiting", JSON, nullable=False),
    Column("blocked", Boolean, nullable=False),
    Column("terms", JSON, nullable=False, server_default="{}"),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", TIME, nullable=False),
    Column("ended_at", TIME),
    Column("why", Text, nullable=False),
    Column("due_at", TIME),
    Index("rollouts_number", "number", "id"),
)
OPEN_ROLLOUT: ColumnElement[bool] = rollouts.c.ended_at.is_(None)
index_where("rollouts_open", rollouts.c.due_at, rollouts.c.number, only=OPEN_ROLLOUT)

# Where nothing new is announced or started for now.
holds = Table(
    "holds",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", TIME, nullable=False),
    Column("project", NAME),
    Column("host", NAME),
    Column("abort", Boolean, nullable=False, server_default=false()),
)
