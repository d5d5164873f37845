"""Who calls, who is called, and what they were answered: tokens, sessions, answers, webhooks, rehearsals."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from forewarn.store.tables.columns import NAME, TIME, metadata

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
