"""The rules on a real store, with a clock that the test turns."""
