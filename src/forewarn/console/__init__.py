"""The web console: the static files in `web/` and the ASGI app that serves them.

Its data comes from the operator API.
"""
