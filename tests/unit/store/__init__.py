"""Tests of forewarn.store."""
