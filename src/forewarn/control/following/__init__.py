"""Following what is saved: boards by deltas, the stream and webhooks by records."""
