"""Webhooks: declaring them, and what is kept of how they are served."""
