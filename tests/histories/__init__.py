"""Random histories of a fleet, each transaction held against the rules."""
