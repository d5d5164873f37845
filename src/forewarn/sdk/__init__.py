"""The client for programs inside a machine. It never imports the server."""
