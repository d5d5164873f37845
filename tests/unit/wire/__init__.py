"""Tests of forewarn.wire."""
