"""Tests of forewarn.drivers.openstack."""
