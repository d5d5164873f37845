"""Save decisions: the fleet, orders, events and records."""
