"""Orders from request to end: their stages, events and steps, and the reason for everything that waits."""
