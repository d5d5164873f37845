"""Live views: the change stream of a server, a copy of the fleet that it keeps current, and screens."""
