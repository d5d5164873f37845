"""Tests of forewarn.agent."""
