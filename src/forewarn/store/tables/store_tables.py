"""The store as a whole: its one row, what was removed from it, what has happened, and who calls it."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    literal_column,
)

from forewarn.store.tables.columns import NAME, NUMBER_KEY, TIME, index_where, metadata

# One row. Every writer locks it first, so writes come one after another and in the order of `number`.
meta = Table(
    "meta",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
    Column("reached", TIME),
    # When the service last ran, and the stretches before it in which it did not: guests could not be heard.
    Column("present_at", TIME),
    # What the system's clock showed then, if service time was ahead of it.
    Column("system_at", TIME),
    # Counts how often that was saved: SQLite writes nothing where nothing differs, and time may stand still.
    Column("beats", BigInteger, nullable=False, server_default="0"),
    Column("absences", JSON, nullable=False, server_default="[]"),
    # Whose time it lives in; none: it was never served.
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
    # How long moves were expected to take, and took.
    Column("pace", JSON, nullable=False, server_default="{}"),
)
THE_META_ROW: ColumnElement[bool] = meta.c.id == literal_column("1")

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
