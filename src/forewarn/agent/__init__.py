"""The agent runs in a machine: it runs handlers and approves events. It never imports the server."""
