"""Tests of forewarn.server."""
