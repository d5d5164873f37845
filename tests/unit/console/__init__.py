"""Tests of forewarn.console."""
