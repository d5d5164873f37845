"""Tests of forewarn.agent.journal."""
