"""A check of the project's English: `python -m tests.prose`, part of `make check`."""
