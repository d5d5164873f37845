"""A service without its programs, and drivers for tests."""
