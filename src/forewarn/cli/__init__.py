"""The `forewarn` command: `main` puts the nouns together; what every command shares lies beside it."""
