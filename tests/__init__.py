"""The tests."""

from pathlib import Path

# The repository.
ROOT = Path(__file__).parents[1]
