"""Drivers that load C code: each runs in a process of its own, so that its crash is not the server's."""
