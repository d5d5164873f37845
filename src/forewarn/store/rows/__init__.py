"""Values of core as rows of the tables, and back."""
