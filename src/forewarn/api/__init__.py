"""The face that operators and users see: the HTTP API at /v1, the probes and the metrics."""
