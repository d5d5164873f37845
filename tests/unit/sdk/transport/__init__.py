"""Tests of forewarn.sdk.transport."""
