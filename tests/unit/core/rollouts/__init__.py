"""Tests of forewarn.core.rollouts."""
