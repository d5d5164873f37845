"""Tests of forewarn.cli.commands."""
