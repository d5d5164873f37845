"""Tests of forewarn.cli.nouns."""
