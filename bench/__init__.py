"""Benchmarks of the real programs: `python -m bench`, or `make bench`."""
