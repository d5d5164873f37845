"""The JSON formats of the guest endpoint, the operator API and the fleet file, as pure functions."""
