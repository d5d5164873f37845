"""What differs between systems: where leases are kept; processes, signals, users, files, local sockets.

Two modules with the same functions, of which `system` is the one for this system. Nothing else in SDK and
agent asks which system this is, or imports what only some systems have. `win32` was written from
documentation and was not run there.
"""

import sys

if sys.platform == "win32":
    from forewarn.platform import win32 as system
else:
    from forewarn.platform import posix as system

__all__ = ["system"]
