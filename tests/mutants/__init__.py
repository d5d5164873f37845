"""Mutants: wrong functions that replace right ones, and the tests that must catch them.

Each mutant of `mutants.py` breaks one rule of docs/explanation/rules.md, and names the tests meant to catch
it. `make test-mutants` runs those tests for each mutant in a process of its own, up to the first that fails,
and fails if none does: then a rule could be broken without a test that says so. Mutants replace functions
by name, not lines of text: a rename breaks none silently, for one whose function is gone is an error
(`tests/unit/test_mutants.py`, in `make test`). Programs that tests start have no mutant in place.
"""
