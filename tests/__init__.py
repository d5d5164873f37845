"""The tests."""

from pathlib import Path

# The root of the repository.
ROOT = Path(__file__).parents[1]
