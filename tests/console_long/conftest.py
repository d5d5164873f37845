"""Fixtures for tests of the console."""

from importlib.util import find_spec

if find_spec("playwright"):
    from tests.helpers.console.console_fixtures import profiles, serve, server, visit

    __all__ = ["profiles", "serve", "server", "visit"]
else:
    collect_ignore_glob = ["test_*"]  # `make test-page` installs it
