"""The history of the schema, as Alembic runs it."""
