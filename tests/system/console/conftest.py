"""The fixtures of the console's tests."""

from tests.console_fixtures import browser, pictures, serve, server, visit

__all__ = ["browser", "pictures", "serve", "server", "visit"]
