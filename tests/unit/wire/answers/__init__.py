"""Tests of forewarn.wire.answers."""
