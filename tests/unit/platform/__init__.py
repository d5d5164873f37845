"""Tests of forewarn.platform."""
