"""Tests of forewarn.cli."""
