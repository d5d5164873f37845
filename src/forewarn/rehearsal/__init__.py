"""Scenarios and faults of the metadata plane. Empty so far."""
