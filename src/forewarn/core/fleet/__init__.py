"""Declaring and changing the fleet: projects, hosts, groups and machines."""
