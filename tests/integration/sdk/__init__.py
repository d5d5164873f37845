"""Integration tests of the guest clients and of `forewarn.testing`."""
