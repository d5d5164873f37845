"""The client for programs inside a machine; it never imports the server."""
