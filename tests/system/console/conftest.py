"""The fixtures of the console's tests."""

from importlib.util import find_spec

if find_spec("playwright"):
    from tests.helpers.console.console_fixtures import calm, profiles, serve, server, visit

    __all__ = ["calm", "profiles", "serve", "server", "visit"]
else:
    collect_ignore_glob = ["test_*"]  # `make test-page` installs it
