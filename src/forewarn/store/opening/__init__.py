"""Finding a database, locking it, bringing its schema up to date, and copying it."""
