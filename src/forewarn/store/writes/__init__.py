"""Saving what was decided, one module for each kind of thing."""
