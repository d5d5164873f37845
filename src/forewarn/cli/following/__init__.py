"""Following a server as it changes: its stream, a copy of the fleet kept up to date by it, and live views."""
