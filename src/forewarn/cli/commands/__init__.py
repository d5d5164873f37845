"""The commands that call a server, one module for each noun, such as `forewarn machine`."""
