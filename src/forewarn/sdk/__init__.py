"""The client for programs inside a machine. Empty so far; never imports the server."""
