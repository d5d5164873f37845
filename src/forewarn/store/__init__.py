"""The store behind control's ports: SQLAlchemy Core, one implementation for SQLite and PostgreSQL."""
