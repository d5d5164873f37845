"""Documents that are generated."""
