"""Rehearsals on a running server, and the ledger of what guests do in one."""
