"""What differs between systems: where leases are kept; processes, signals, users, files, local sockets.

Two modules with the same functions, of which one is loaded. Nothing else in SDK and agent asks which system
this is, or imports what only some systems have. `windows` was written from documentation and was not run
there.
"""

import sys

if sys.platform == "win32":
    from forewarn.sdk.platform.windows import (
        HAS_USERS,
        ask_to_end,
        become,
        cannot_become,
        connect_locally,
        end_tree,
        hold_file,
        identity_of,
        is_held,
        lease_sources,
        on_signal,
        others_can_change,
        own_group,
        process_started,
        sync_folder,
        tell_locally,
    )
else:
    from forewarn.sdk.platform.posix import (
        HAS_USERS,
        ask_to_end,
        become,
        cannot_become,
        connect_locally,
        end_tree,
        hold_file,
        identity_of,
        is_held,
        lease_sources,
        on_signal,
        others_can_change,
        own_group,
        process_started,
        sync_folder,
        tell_locally,
    )

__all__ = [
    "HAS_USERS",
    "ask_to_end",
    "become",
    "cannot_become",
    "connect_locally",
    "end_tree",
    "hold_file",
    "identity_of",
    "is_held",
    "lease_sources",
    "on_signal",
    "others_can_change",
    "own_group",
    "process_started",
    "sync_folder",
    "tell_locally",
]
