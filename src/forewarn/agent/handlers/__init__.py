"""What handlers do, a module for each kind: its fields, and how one is made of them."""
