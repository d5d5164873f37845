"""Tests of forewarn.agent.setup."""
