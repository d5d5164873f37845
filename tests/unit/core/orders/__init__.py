"""Tests of forewarn.core.orders."""
