"""The parts of a snapshot, each a protocol in the words of its reader; the store's have the same names."""
