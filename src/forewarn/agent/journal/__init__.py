"""The agent's journal on disk, and the state of each event that follows from it."""
