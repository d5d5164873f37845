"""Rehearsals: play scenarios with faults to guests, in a private service or on a running server."""
