"""What is kept of the store as a whole, and of what was removed from it."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ColumnElement,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    literal_column,
)

from forewarn.store.tables.columns import NAME, TIME, metadata

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
    Column(
        "pace", JSON, nullable=False, server_default="{}"
    ),  # how long moves were expected to take, and took
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
