"""Tests of forewarn.store.opening."""
