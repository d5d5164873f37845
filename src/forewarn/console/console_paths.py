"""Which paths of the operator address are the console's."""

HOME = "/console/"
ASSETS = f"{HOME}assets/"
# What people type; it leads to the console.
WITHOUT_SLASH = ("/", "/console")


def is_console(path: str) -> bool:
    """Tell whether a path is the console's; all others are the operator API's."""
    return path in WITHOUT_SLASH or path.startswith(HOME)
