"""The parts of snapshots and transactions: queries, and the changes that go with them."""
