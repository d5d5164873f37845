"""The store, with SQLAlchemy Core: one implementation for SQLite and PostgreSQL."""
