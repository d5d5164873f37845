"""Tests of forewarn.core.guests."""
