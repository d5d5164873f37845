"""Tests of forewarn.core."""
