"""Tests of forewarn.agent.care."""
