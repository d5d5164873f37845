"""The OpenStack driver on a real nova: `make test-openstack`."""
