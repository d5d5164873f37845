"""Generated documents."""
