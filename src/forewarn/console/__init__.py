"""The web console: static files, and the ASGI app that serves them. Its data comes from the operator API."""
