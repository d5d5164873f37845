"""The web console: the page in `web/`, and what serves it. All that it shows is asked of the operator API."""
