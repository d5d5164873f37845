"""Tests of forewarn.server.threads."""
