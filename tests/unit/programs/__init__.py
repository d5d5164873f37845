"""Tests of forewarn.programs."""
