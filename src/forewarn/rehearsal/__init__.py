"""Scenarios that guests rehearse in a private service, and the faults of the metadata plane they meet."""
