"""Rehearsals on a running server."""
