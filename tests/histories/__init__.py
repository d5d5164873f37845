"""Random histories of a fleet; the rules are checked after each transaction."""
