"""Reads that several parts of a snapshot share."""
