"""Stores and databases for tests."""
