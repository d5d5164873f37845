"""Tests of forewarn.drivers.libvirt."""
