"""Which records are pushed to webhooks, and which addresses a project's webhooks may call."""
