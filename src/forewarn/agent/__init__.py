"""The program in a machine that runs handlers and approves; it never imports the server."""
