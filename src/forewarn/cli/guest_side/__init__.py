"""Commands that run inside a machine: `forewarn guest` and `forewarn agent`."""
