"""The transaction of control's ports: what can be saved, one module for each kind of thing."""
