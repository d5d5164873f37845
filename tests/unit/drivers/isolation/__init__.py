"""Tests of forewarn.drivers.isolation."""
