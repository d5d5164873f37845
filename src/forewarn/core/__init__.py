"""The rules. Pure: no I/O, no clock, no randomness.

What needs the time takes `now`, what needs an id takes a maker of ids.
"""
