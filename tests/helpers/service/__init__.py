"""The service without its endpoints, and drivers for tests."""
