"""Use cases for orders and events."""
