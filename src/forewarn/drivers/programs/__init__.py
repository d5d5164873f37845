"""Programs that drivers run: how they are kept within bounds, what they are given, what they answer."""
