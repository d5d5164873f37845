"""What has happened: records, and what is counted of them for good."""

from sqlalchemy import BigInteger, Boolean, Column, Index, PrimaryKeyConstraint, Table, Text

from forewarn.store.tables.columns import NAME, NUMBER_KEY, TIME, index_where, metadata

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
