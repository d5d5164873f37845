"""The clients for guests, and `forewarn.testing`."""
