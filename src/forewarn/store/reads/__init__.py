"""The snapshot of control's ports: what is read in one transaction, a module for each kind of question."""
