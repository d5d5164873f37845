"""The guest endpoint on a host, serving from its own copy of the state. Empty so far."""
