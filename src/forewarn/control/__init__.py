"""The use cases: load, let core decide, save, act. Defines the interfaces of drivers and others."""
