"""Tests on real virtual machines: `make test-machines`."""
