"""A machine's agent: its handlers, journal, commands and recipes."""
