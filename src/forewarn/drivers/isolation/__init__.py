"""Drivers that load C code: each runs in a separate process, so that a crash does not end the server."""
