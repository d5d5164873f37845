"""The interface for operators and users: the HTTP API at /v1, the probes and the metrics."""
