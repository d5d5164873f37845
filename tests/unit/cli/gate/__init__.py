"""Tests of forewarn.cli.gate."""
