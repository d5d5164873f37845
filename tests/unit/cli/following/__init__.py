"""Tests of forewarn.cli.following."""
