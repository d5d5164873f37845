"""Tests of forewarn.drivers."""
