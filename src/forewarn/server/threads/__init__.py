"""The server's threads: the worker, readers, driver lanes, the operator port and webhooks."""
