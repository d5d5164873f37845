"""Tests of forewarn.rehearsal."""
