"""The agent's work on events: comparing documents, running handlers, approving, recovering."""
