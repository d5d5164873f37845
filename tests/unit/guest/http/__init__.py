"""Tests of forewarn.guest.http."""
