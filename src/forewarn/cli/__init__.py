"""What people type: the `forewarn` command."""
