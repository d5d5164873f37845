"""The rules of forewarn. Pure: no I/O, no clock, no randomness.

A function that needs the time takes `now`. A function that needs an id takes a callable that makes ids.
"""
