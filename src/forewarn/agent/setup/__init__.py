"""The agent's config, and the checks of it before the agent runs."""
