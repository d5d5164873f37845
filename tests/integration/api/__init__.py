"""The operator API: what it answers, refuses and streams."""
