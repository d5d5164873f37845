"""The `forewarn` command: `main` assembles the commands, which share the other modules of this package."""
