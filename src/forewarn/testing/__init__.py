"""For other people's tests: the pytest plug-in. Empty so far."""
