"""Rollouts: maintenance of many hosts in waves, with its planning, progress and forecast."""
