"""The commands that ask a server, a module for each noun: `forewarn machine`, `forewarn order` and so on."""
