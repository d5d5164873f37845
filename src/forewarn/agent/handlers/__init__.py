"""The kinds of handlers, one module for each: its config fields and its implementation."""
