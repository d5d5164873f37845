"""Declare, import and show the fleet: single machines or a whole fleet file."""
