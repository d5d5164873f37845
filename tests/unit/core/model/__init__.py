"""Tests of forewarn.core.model."""
