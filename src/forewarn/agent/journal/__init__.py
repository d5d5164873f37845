"""What the agent has seen, begun and done, on disk, and what follows from it for each event."""
