"""What the agent does about events: which it takes up, their handlers, the approval, the recovery."""
