"""Tests of forewarn.guest.board."""
