"""Tests of forewarn.core.fleet."""
