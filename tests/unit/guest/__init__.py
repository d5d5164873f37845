"""Tests of forewarn.guest."""
