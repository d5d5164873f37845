"""Tests of forewarn.core.admission."""
