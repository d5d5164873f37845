"""One module for each change of the schema; a released one is never edited."""
