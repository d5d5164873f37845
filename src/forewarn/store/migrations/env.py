"""Alembic environment: runs the migrations on a given connection, in its open transaction."""

from alembic import context

from forewarn.store import tables
from forewarn.store.opening.schema import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables.metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
    render_as_batch=True,  # SQLite cannot change a column in place
)
with context.begin_transaction():
    context.run_migrations()
