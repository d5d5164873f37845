"""The rules on a real store, with a manual clock."""
