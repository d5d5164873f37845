"""Tests of forewarn.sdk."""
