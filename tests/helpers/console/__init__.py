"""Helpers for tests of the console in a browser."""
