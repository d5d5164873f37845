"""Real programs, and the guests and servers they need."""
