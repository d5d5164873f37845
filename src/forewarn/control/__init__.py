"""The use cases: load, let core decide, save, act. Owns the ports that the outside world implements."""
