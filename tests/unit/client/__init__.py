"""Tests of forewarn.client."""
