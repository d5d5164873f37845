"""What the agent is set up to do: its config, the options over it, and what can be said before it runs."""
