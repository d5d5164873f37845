"""The tables: a column for each value that queries use or compare, JSON for values that are only read whole.

Times are microseconds since 1970, so that both databases store and compare them exactly. There are no foreign
keys: `core` decides which references are valid, and orders outlive their machines. A change here needs a
migration; a test compares the two.
"""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    case,
    cast,
    event,
    false,
    func,
    literal_column,
)

from forewarn.core.basic_types import HINTS

metadata = MetaData()

# Without a collation PostgreSQL sorts by the locale of the database, and pages would differ from SQLite's.
NAME = Text().with_variant(Text(collation="C"), "postgresql")
TIME = BigInteger()
# On SQLite, only INTEGER makes the number the row id, without a second index.
NUMBER_KEY = BigInteger().with_variant(Integer(), "sqlite")


def index_where(index: str, *columns: Column[Any], only: ColumnElement[bool]) -> Index:
    """Create a partial index: of the rows that meet a condition."""
    return Index(index, *columns, info={"only": only})


# Queries for open things by key use one of these two expressions, which leave PostgreSQL only one index. For
# a key and `ended_at IS NULL` it might read everything that is open: by the statistics of a quiet hour, that
# is almost nothing.


def while_open(ended_at: Column[int], key: Column[str]) -> ColumnElement[str]:
    """Return the key while a row is open, and NULL afterwards: the expression of an index."""
    # SQLite does not know that an expression is text, and would not use its index for a comparison with text.
    return cast(case((ended_at.is_(None), key)), Text)


def is_open(ended_at: Column[int]) -> ColumnElement[bool]:
    """Return whether a row is open, as an expression without an index: another condition finds the row."""
    return func.coalesce(ended_at, literal_column("0")) == literal_column("0")


@event.listens_for(metadata, "before_create")
def _limit_indexes(_: MetaData, connection: Connection, **__: object) -> None:
    """Set the conditions of partial indexes for the dialect in use, without loading the other dialect."""
    for index in (index for table in metadata.sorted_tables for index in table.indexes):
        if "only" in index.info:
            index.dialect_kwargs[f"{connection.dialect.name}_where"] = index.info["only"]


# The fleet

projects = Table(
    "projects",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("settings", JSON, nullable=False, server_default="{}"),  # as declared
    Column("source", NAME, nullable=False, server_default="declared"),
)

hosts = Table(
    "hosts",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("state", Text, nullable=False),
    Column("driver", Text),
    Column("uri", Text),
    Column("at_once", Integer),
    Column("resources", JSON, nullable=False, server_default="{}"),
    Column("labels", JSON, nullable=False, server_default="{}"),
    Column("bare_metal", Boolean, nullable=False, server_default=false()),
    Column("cordoned_for", NAME),
    Column("source", NAME, nullable=False, server_default="declared"),
    Column("unreachable_since", TIME),
    Column("rack", NAME),  # from the labels
    # How many machines the host will carry once all moves are done. Stored, because the cost of counting them
    # grows with the fleet.
    Column("carried", Integer, nullable=False, server_default="0"),
    Index("hosts_room", "state", "carried", "name"),
    Index("hosts_rack", "rack", "state", "carried", "name"),
)

# Most hosts use the default driver of the fleet.
OWN_DRIVER: ColumnElement[bool] = hosts.c.driver.is_not(None)
index_where("hosts_driver", hosts.c.driver, hosts.c.name, only=OWN_DRIVER)
UNREACHABLE: ColumnElement[bool] = hosts.c.unreachable_since.is_not(None)
index_where("hosts_unreachable", hosts.c.name, only=UNREACHABLE)

groups = Table(
    "groups",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("project", NAME, nullable=False),
    Column("kind", Text, nullable=False),
    Column("update_domains", Integer, nullable=False),
    Column("born", BigInteger, nullable=False),
    Column("policy", JSON, nullable=False, server_default="{}"),
    Column("incarnation", BigInteger, nullable=False),
    Column("enabled_at", TIME),
    Column("ready_at", TIME),
    Column("heard", Boolean, nullable=False, server_default=false()),
    Column("source", NAME, nullable=False, server_default="declared"),
    Column("version", BigInteger, nullable=False),  # grows with each save, for compare-and-set
    Column("changed", BigInteger, nullable=False),  # the number of its last change, for the feed
    Index("groups_changed", "changed"),
)
# A literal: SQLite uses a partial index only if the query repeats its condition.
LISTED_GROUP: ColumnElement[bool] = groups.c.kind != literal_column("'standalone'")
index_where("groups_listed", groups.c.name, only=LISTED_GROUP)
index_where("groups_project", groups.c.project, groups.c.name, only=LISTED_GROUP)
index_where("groups_ready", groups.c.ready_at, only=groups.c.ready_at.is_not(None))

# When each enabled group last polled, or was enabled. A table of its own, as for machines: it is written for
# whole fleets at a time, and other writers must not wait for that.
group_activity = Table(
    "group_activity",
    metadata,
    Column("group_name", NAME, primary_key=True),
    Column("last_active", TIME, nullable=False),
    Index("group_activity_oldest", "last_active", "group_name"),
)

machines = Table(
    "machines",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("name", NAME, nullable=False),
    Column("key", NAME, nullable=False),  # the name, case-folded
    Column("project", NAME, nullable=False),
    Column("group_name", NAME, nullable=False),
    Column("host", NAME),
    Column("last_host", NAME),  # of a machine without a host
    Column("bound_for", NAME),
    Column("place", NAME),  # `bound_for`, or `host`: the host that counts the machine
    Column("update_domain", Integer, nullable=False),
    Column("fault_domain", Integer, nullable=False),
    Column("priority", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("network", NAME, nullable=False),
    Column("address", NAME),
    Column("mac", Text),
    Column("port", Integer),
    Column("tags", JSON, nullable=False),
    Column("location", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("size", Text, nullable=False),
    Column("os", Text, nullable=False),
    Column("mobility", Text, nullable=False, server_default="cold"),
    Column("resources", JSON, nullable=False, server_default="{}"),
    Column("labels", JSON, nullable=False, server_default="{}"),
    Column("source", NAME, nullable=False, server_default="declared"),
    Column("changed", BigInteger, nullable=False),
    UniqueConstraint("project", "key", name="machines_name"),
    UniqueConstraint("network", "address", name="machines_address"),
    UniqueConstraint("port", name="machines_port"),
    Index("machines_key", "key"),
    Index("machines_host", "host"),
    Index("machines_place", "place", "group_name", "update_domain"),
    Index("machines_group", "group_name", "update_domain", "state"),
    Index("machines_state", "state"),
    Index("machines_changed", "changed"),
)

# When machines last polled; machines that never did have no row.
machine_activity = Table(
    "machine_activity",
    metadata,
    Column("machine_id", NAME, primary_key=True),
    Column("last_seen", TIME, nullable=False),
)

# Work

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

# The machines that an open order still concerns; its events may name more.
order_machines = Table(
    "order_machines",
    metadata,
    Column("machine_id", NAME, nullable=False),
    Column("order_id", NAME, nullable=False),
    PrimaryKeyConstraint("machine_id", "order_id"),
    Index("order_machines_order", "order_id"),
)

# The groups whose events an open order waits for.
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
    # Whether the outcome of its promise of notice is counted.
    Column("judged", Boolean, nullable=False, server_default=false()),
    # Whether its rows in the next two tables were removed with its records.
    Column("forgotten", Boolean, nullable=False, server_default=false()),
    Index("events_order", "order_id"),
    Index("events_created", "number", "id"),
)
LISTED_EVENT: ColumnElement[bool] = events.c.ended_at.is_(None)
# The rules count every type but hints. A literal, for SQLite's partial indexes.
_HINTS = ", ".join(f"'{type_}'" for type_ in sorted(HINTS))
COUNTED_TYPE: ColumnElement[bool] = literal_column(f"events.type NOT IN ({_HINTS})")
COUNTED_EVENT = LISTED_EVENT & COUNTED_TYPE
IS_LISTED_EVENT = is_open(events.c.ended_at)
GROUP_OF_LISTED_EVENT = while_open(events.c.ended_at, events.c.group_name)
index_where("events_ended", events.c.ended_at, only=events.c.ended_at.is_not(None))
Index("events_group", GROUP_OF_LISTED_EVENT, events.c.domain)
index_where("events_number", events.c.number, events.c.id, only=LISTED_EVENT)
index_where("events_status", events.c.status, events.c.not_before, only=LISTED_EVENT)

# The machines that an event named when it was announced, for the history of a machine.
event_machines = Table(
    "event_machines",
    metadata,
    Column("machine_key", NAME, nullable=False),
    Column("event_id", NAME, nullable=False),
    PrimaryKeyConstraint("machine_key", "event_id"),
    Index("event_machines_event", "event_id"),
)

# When a machine was first sent a document with an event.
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

# Holds: while one is in force, no work in its scope is announced or started.
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

# The store as a whole, the history, and its callers

# One row. Every writer locks it first, so writes are serialized in the order of `number`.
meta = Table(
    "meta",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
    Column("reached", TIME),
    # When the service last ran; `absences` has the earlier periods in which guests could not reach it.
    Column("present_at", TIME),
    # The system clock at `present_at`, if service time was ahead of it.
    Column("system_at", TIME),
    # How often `present_at` was saved. It makes every save a change: SQLite skips writes that change nothing,
    # and a manual clock may stand still.
    Column("beats", BigInteger, nullable=False, server_default="0"),
    Column("absences", JSON, nullable=False, server_default="[]"),
    # The kind of clock; NULL before the first server.
    Column("time_kind", Text),
    # In a backup that was not served yet: the service time of the backup.
    Column("backup_of", TIME),
    Column("grace_until", TIME),
    Column("grace_announced_before", TIME),
    Column("applied_fleet", Text),
    Column("defaults", JSON, nullable=False, server_default="{}"),  # of the fleet, as declared
    Column("lineage", Text, nullable=False),
    # How far old records are pruned, how many of them no record reports yet, and when to prune again.
    Column("pruned", BigInteger, nullable=False, server_default="0"),
    Column("pruned_unsaid", BigInteger, nullable=False, server_default="0"),
    Column("prune_at", TIME),
    # A counter of the changes of browser sessions, so that a cache of them knows when it is stale.
    Column("session_changes", BigInteger, nullable=False, server_default="0"),
    # A version of projects and holds, for the same purpose; a version is never used again.
    Column("settings_version", Text, nullable=False, server_default=""),
    # How many open rollouts are blocked. While there are none, saves need not search for them.
    Column("blocked_rollouts", Integer, nullable=False, server_default="0"),
    # Tombstones up to this number may be missing, so a reader that is not further reads everything again.
    Column("forgotten", BigInteger, nullable=False, server_default="0"),
    # The expected and the actual durations of moves.
    Column("pace", JSON, nullable=False, server_default="{}"),
)
THE_META_ROW: ColumnElement[bool] = meta.c.id == literal_column("1")

# Removed keys and their numbers, for readers of the feed.
tombstones = Table(
    "tombstones",
    metadata,
    Column("kind", Text, nullable=False),  # the table
    Column("key", NAME, nullable=False),
    Column("number", BigInteger, nullable=False),
    PrimaryKeyConstraint("kind", "key"),
    Index("tombstones_number", "kind", "number"),
)

records = Table(
    "records",
    metadata,
    Column("number", NUMBER_KEY, primary_key=True, autoincrement=False),
    Column("at", TIME, nullable=False),
    Column("kind", Text, nullable=False),
    Column("project", NAME),
    Column("group_name", NAME),
    Column("host", NAME),
    Column("machine", NAME),
    Column("machine_key", NAME),
    Column("event_id", NAME),
    Column("order_id", NAME),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("records_at", "at", "number"),
    Index("records_project", "project", "number"),
    Index("records_machine", "machine_key", "number"),
    Index("records_event", "event_id", "number"),
    Index("records_order", "order_id", "number"),
)
index_where("records_host", records.c.host, records.c.number, only=records.c.host.is_not(None))
index_where("records_group", records.c.group_name, records.c.number, only=records.c.group_name.is_not(None))

# How many machines the records of a kind have named. Stored, because the history only grows.
tallies = Table(
    "tallies",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("machines", BigInteger, nullable=False),
)

# Outcomes of the promised notice. Stored, because records are pruned.
promises = Table(
    "promises",
    metadata,
    Column("project", NAME, nullable=False),
    Column("month", NAME, nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("kept", BigInteger, nullable=False),
    Column("late", BigInteger, nullable=False),
    Column("never", BigInteger, nullable=False),
    Column("broken", BigInteger, nullable=False),
    Column("unannounced", BigInteger, nullable=False, server_default="0"),
    PrimaryKeyConstraint("project", "month", "simulated"),
)


tokens = Table(
    "tokens",
    metadata,
    Column("digest", NAME, primary_key=True),  # of the secret, which is never stored
    Column("number", BigInteger, nullable=False),
    Column("name", NAME, nullable=False),
    Column("role", Text, nullable=False),
    Column("project", NAME),
    Column("created_at", TIME, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", TIME),
    Column("revoked_at", TIME),
    Index("tokens_number", "number", "digest"),
)

# Browser sessions. They are few, so no index finds the expired ones.
sessions = Table(
    "sessions",
    metadata,
    Column("digest", NAME, primary_key=True),  # of the secret, which is never stored
    Column("token", NAME, nullable=False),  # the digest of the token
    Column("created_at", TIME, nullable=False),  # in real time
    Column("expires_at", TIME, nullable=False),  # the same
    Index("sessions_token", "token", "created_at"),
)

# Answers to calls with an Idempotency-Key.
answers = Table(
    "answers",
    metadata,
    Column("caller", NAME, nullable=False),
    Column("key", NAME, nullable=False),  # a digest: the key itself decrypts the answer
    Column("request", Text, nullable=False),  # a digest of the request
    Column("status", Integer, nullable=False),
    Column("salt", Text, nullable=False),
    Column("body", LargeBinary),  # sealed; NULL: too large to save
    Column("saved_at", TIME, nullable=False),  # in real time
    PrimaryKeyConstraint("caller", "key"),
    Index("answers_saved_at", "saved_at"),
    Index("answers_caller", "caller", "saved_at"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("project", NAME),
    Column("owner", NAME),  # the project that manages it; NULL: the operators
    Column("kinds", JSON, nullable=False),
    Column("secret", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("created_at", TIME, nullable=False),
    Column("delivered", BigInteger, nullable=False),  # all records up to this number are delivered
    Column("failures", Integer, nullable=False),
    Column("failing_since", TIME),
    Column("error", Text, nullable=False),
    Column("next_try", TIME),  # in real time
    Index("webhooks_number", "number", "id"),
)

# Running rehearsals and permanently ended ones; they are few.
rehearsals = Table(
    "rehearsals",
    metadata,
    Column("project", NAME, nullable=False),
    Column("id", NAME, nullable=False),
    Column("scenario", Text, nullable=False),
    Column("machines", JSON, nullable=False),
    Column("faults", JSON, nullable=False),
    Column("by", Text, nullable=False),
    Column("begun_at", TIME, nullable=False),
    Column("renewed_at", TIME, nullable=False),  # in real time
    Column("ended_by", Text, nullable=False),
    PrimaryKeyConstraint("project", "id"),
)
