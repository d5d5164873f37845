"""The tables: columns for what is asked for or compared, JSON for what is only ever read whole.

Times are microseconds since 1970, so that both databases keep and compare them exactly. There are no
foreign keys: the rules of what may refer to what are core's, and orders outlive their machines. A change
here needs a migration beside it; a test compares the two.
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

from forewarn.core.words import HINTS

metadata = MetaData()

# PostgreSQL would otherwise sort by the locale of the database, and pages would differ from SQLite's.
NAME = Text().with_variant(Text(collation="C"), "postgresql")
TIME = BigInteger()
# On SQLite only this spelling makes the number the row's own id, without a second index.
NUMBER_KEY = BigInteger().with_variant(Integer(), "sqlite")


def _where(index: str, *columns: Column[Any], only: ColumnElement[bool]) -> Index:
    return Index(index, *columns, info={"only": only})


# What is open is found by a key in one of two ways, which leave PostgreSQL no choice. Asked for the key and
# for `ended_at IS NULL`, it might read all that is open along another index, and look for the key in that: by
# the statistics of a quiet hour there is hardly anything open.


def _while_open(ended_at: Column[int], key: Column[str]) -> ColumnElement[str]:
    """Return a key while something is open, and none afterwards: what an index of its own has."""
    # Of an expression SQLite does not know that it is a text, and would compare it with none by its index.
    return cast(case((ended_at.is_(None), key)), Text)


def _is_open(ended_at: Column[int]) -> ColumnElement[bool]:
    """Return whether something is open, in words that no index has: for what another condition finds."""
    return func.coalesce(ended_at, literal_column("0")) == literal_column("0")


@event.listens_for(metadata, "before_create")
def _limit_indexes(_: MetaData, connection: Connection, **__: object) -> None:
    """Limit indexes to their rows, in the words of this database: those of another would load its dialect."""
    for index in (index for table in metadata.sorted_tables for index in table.indexes):
        if "only" in index.info:
            index.dialect_kwargs[f"{connection.dialect.name}_where"] = index.info["only"]


# One row. Every writer locks it first, so writes come one after another and in the order of `number`.
meta = Table(
    "meta",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
    Column("reached", TIME),
    # When the service last ran, and the stretches before it in which it did not: guests could not be heard.
    Column("present_at", TIME),
    # Counts how often that was saved: SQLite writes nothing where nothing differs, and time may stand still.
    Column("beats", BigInteger, nullable=False, server_default="0"),
    Column("absences", JSON, nullable=False, server_default="[]"),
    # Whose time it lives in; none: its forewarn did not know.
    Column("time_kind", Text),
    # In a backup that was not served yet: the service time up to which it has everything.
    Column("backup_of", TIME),
    Column("grace_until", TIME),
    Column("grace_announced_before", TIME),
    Column("applied_fleet", Text),
    Column("defaults", JSON, nullable=False, server_default="{}"),  # of the fleet, as declared
    Column("lineage", Text, nullable=False),
    # How far old records have been removed, how many of them no record mentions yet, and when to look again.
    Column("pruned", BigInteger, nullable=False, server_default="0"),
    Column("pruned_unsaid", BigInteger, nullable=False, server_default="0"),
    Column("prune_at", TIME),
    # Counts how often sessions of browsers have changed, so that whoever knows them need not read them again.
    Column("session_changes", BigInteger, nullable=False, server_default="0"),
    # Another text after each change of projects or holds, for the same reason; none is ever used again.
    Column("settings_version", Text, nullable=False, server_default=""),
    # How many open rollouts wait for something: while there are none, none has to be looked for.
    Column("blocked_rollouts", Integer, nullable=False, server_default="0"),
    # Up to which number it may no longer be known what was removed: who has read no further reads all again.
    Column("forgotten", BigInteger, nullable=False, server_default="0"),
    Column(
        "pace", JSON, nullable=False, server_default="{}"
    ),  # how long moves were expected to take, and took
)
THE_META_ROW: ColumnElement[bool] = meta.c.id == literal_column("1")

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
    Column("rack", NAME),  # of its labels
    # How many machines it carries, or will once moves are over. Kept: counting all of them anew costs more
    # the larger the fleet.
    Column("carried", Integer, nullable=False, server_default="0"),
    Index("hosts_room", "state", "carried", "name"),
    Index("hosts_rack", "rack", "state", "carried", "name"),
)

# Most hosts leave it to the fleet's default.
OWN_DRIVER: ColumnElement[bool] = hosts.c.driver.is_not(None)
_where("hosts_driver", hosts.c.driver, hosts.c.name, only=OWN_DRIVER)

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
    Column("version", BigInteger, nullable=False),  # grows with each save: what compare-and-set compares
    Column("changed", BigInteger, nullable=False),  # the number of its last change, for the feed
    Index("groups_changed", "changed"),
)
# Literal, not bound: SQLite uses a partial index only where the query repeats its condition.
LISTED_GROUP: ColumnElement[bool] = groups.c.kind != literal_column("'standalone'")
_where("groups_listed", groups.c.name, only=LISTED_GROUP)
_where("groups_project", groups.c.project, groups.c.name, only=LISTED_GROUP)
_where("groups_ready", groups.c.ready_at, only=groups.c.ready_at.is_not(None))

# When each enabled group last polled, or else was enabled. A table of its own, like that of the machines:
# it is written for whole fleets at a time, and nobody who decides something must wait for that.
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
    Column("key", NAME, nullable=False),  # the name without its case
    Column("project", NAME, nullable=False),
    Column("group_name", NAME, nullable=False),
    Column("host", NAME),
    Column("last_host", NAME),  # of a machine that is on none
    Column("bound_for", NAME),
    Column("place", NAME),  # the host that it is bound for, or else its own: where it is counted
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

# When machines last polled; those that never did have no row.
machine_activity = Table(
    "machine_activity",
    metadata,
    Column("machine_id", NAME, primary_key=True),
    Column("last_seen", TIME, nullable=False),
)

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
    Column("ended_at", TIME),
    Column("why", Text, nullable=False),
    Column("due_at", TIME),
    Column("heard_at", TIME),  # in real time
    Index("orders_number", "number", "id"),
    Index("orders_state", "state", "number", "id"),
    Index("orders_project", "project", "number", "id"),
)
OPEN_ORDER: ColumnElement[bool] = orders.c.ended_at.is_(None)
_where("orders_open", orders.c.state, orders.c.source, orders.c.project, only=OPEN_ORDER)
IS_OPEN_ORDER = _is_open(orders.c.ended_at)
HOST_OF_OPEN_ORDER = _while_open(orders.c.ended_at, orders.c.host)
Index("orders_host", HOST_OF_OPEN_ORDER)
_where("orders_ever_on", orders.c.host, only=orders.c.host.is_not(None))
_where("orders_due", orders.c.due_at, orders.c.number, only=orders.c.due_at.is_not(None))

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
    Column("armed_at", TIME),  # of events that ended before 0023 nobody knows
    Column("started_at", TIME),
    Column("ended_at", TIME),
    Column("why", Text, nullable=False),
    Column("approvals", JSON, nullable=False),
    Column("rule", Text, nullable=False, server_default="any"),
    Column("deferred", JSON(none_as_null=True)),
    Column("postponed", JSON(none_as_null=True)),
    # Whether what became of its promise of notice is counted: before 0022 that was done when events started.
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
IS_LISTED_EVENT = _is_open(events.c.ended_at)
GROUP_OF_LISTED_EVENT = _while_open(events.c.ended_at, events.c.group_name)
_where("events_ended", events.c.ended_at, only=events.c.ended_at.is_not(None))
Index("events_group", GROUP_OF_LISTED_EVENT, events.c.domain)
_where("events_number", events.c.number, events.c.id, only=LISTED_EVENT)
_where("events_status", events.c.status, events.c.not_before, only=LISTED_EVENT)

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

# How many machines the records of a kind have named: kept, because counting the history takes ever longer.
tallies = Table(
    "tallies",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("machines", BigInteger, nullable=False),
)

# What became of the notice that machines were promised: kept, because records are not.
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
_where("records_host", records.c.host, records.c.number, only=records.c.host.is_not(None))
_where("records_group", records.c.group_name, records.c.number, only=records.c.group_name.is_not(None))

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

tokens = Table(
    "tokens",
    metadata,
    Column("digest", NAME, primary_key=True),  # of the secret, which is kept nowhere
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

# Of browsers; an index by which to find what is over is not worth it: there are few.
sessions = Table(
    "sessions",
    metadata,
    Column("digest", NAME, primary_key=True),  # of the secret, which is kept nowhere
    Column("token", NAME, nullable=False),  # its digest
    Column("created_at", TIME, nullable=False),  # in real time
    Column("expires_at", TIME, nullable=False),  # the same
    Index("sessions_token", "token", "created_at"),
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
_where("rollouts_open", rollouts.c.due_at, rollouts.c.number, only=OPEN_ROLLOUT)

# What calls with an Idempotency-Key were answered.
answers = Table(
    "answers",
    metadata,
    Column("caller", NAME, nullable=False),
    Column("key", NAME, nullable=False),  # a digest: with the key itself the answer can be read
    Column("request", Text, nullable=False),  # a digest of what was asked for
    Column("status", Integer, nullable=False),
    Column("salt", Text, nullable=False),
    Column("body", LargeBinary),  # sealed; none: it was too large
    Column("saved_at", TIME, nullable=False),  # in real time
    PrimaryKeyConstraint("caller", "key"),
    Index("answers_saved_at", "saved_at"),
    Index("answers_caller", "caller", "saved_at"),
)

# What was removed, and at which number, so that readers of the feed learn of it.
tombstones = Table(
    "tombstones",
    metadata,
    Column("kind", Text, nullable=False),  # the table it was removed from
    Column("key", NAME, nullable=False),
    Column("number", BigInteger, nullable=False),
    PrimaryKeyConstraint("kind", "key"),
    Index("tombstones_number", "kind", "number"),
)

# Those that go on, and those that somebody has ended for good; there are few.
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

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("project", NAME),
    Column("owner", NAME),  # the project whose people keep it; none: the operators
    Column("kinds", JSON, nullable=False),
    Column("secret", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("created_at", TIME, nullable=False),
    Column("delivered", BigInteger, nullable=False),  # the number up to which all is delivered
    Column("failures", Integer, nullable=False),
    Column("failing_since", TIME),
    Column("error", Text, nullable=False),
    Column("next_try", TIME),  # in real time
    Index("webhooks_number", "number", "id"),
)
