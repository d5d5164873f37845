"""Declaring the fleet: machines, whole fleet files, and what removed projects leave behind."""
