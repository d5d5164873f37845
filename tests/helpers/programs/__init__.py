"""Real programs, guests and servers around them."""
