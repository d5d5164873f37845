"""Tests of forewarn.rules."""
