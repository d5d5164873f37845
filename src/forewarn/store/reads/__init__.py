"""Reading in one transaction: queries, and what parts of a snapshot share or are put together from."""
