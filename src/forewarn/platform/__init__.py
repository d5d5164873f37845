"""Code that differs between operating systems: DHCP leases, processes, signals, users, files, local sockets.

`posix` and `win32` have the same functions, and `system` is the module for this system. No other code of the
SDK and the agent depends on the system. `win32` was written from documentation and never ran on Windows.
"""

import sys

if sys.platform == "win32":
    from forewarn.platform import win32 as system
else:
    from forewarn.platform import posix as system

__all__ = ["system"]
