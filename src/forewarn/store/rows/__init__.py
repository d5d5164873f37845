"""Values of `core` as rows of tables."""
