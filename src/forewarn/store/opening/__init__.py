"""Opening a database: its lock, its connections, its schema, and copies of it."""
