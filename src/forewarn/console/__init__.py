"""The web console. Empty so far."""
