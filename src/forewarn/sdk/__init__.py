"""The client for programs inside a machine. Never imports the server."""
