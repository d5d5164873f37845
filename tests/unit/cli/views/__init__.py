"""Tests of forewarn.cli.views."""
