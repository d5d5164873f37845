"""The paths of the console on the operator address."""

HOME = "/console/"
ASSETS = f"{HOME}assets/"
# These paths redirect to the console.
WITHOUT_SLASH = ("/", "/console")


def is_console(path: str) -> bool:
    """Return whether a path belongs to the console. All other paths belong to the operator API."""
    return path in WITHOUT_SLASH or path.startswith(HOME)
