"""Tests of forewarn.api."""
