"""Tests of forewarn.cli.live."""
