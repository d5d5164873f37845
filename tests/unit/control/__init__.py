"""Tests of forewarn.control."""
