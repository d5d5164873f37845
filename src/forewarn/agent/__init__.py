"""The program in a machine that runs handlers and approves. Empty so far; never imports the server."""
