"""A real `forewarn serve`: its start, its end, crashes and what it does meanwhile."""
