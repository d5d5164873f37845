"""Pushing records to webhooks, on a thread of its own."""
