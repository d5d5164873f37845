"""The client of the operator API, for the command line, rehearsals and tests."""
