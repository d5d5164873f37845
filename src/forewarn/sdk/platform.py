"""What differs between systems, all of it: nothing else in SDK and agent asks which one it runs on.

The part for Windows follows its documentation; it was not run there.
"""

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import IO, Any

WINDOWS = sys.platform == "win32"


def own_group() -> dict[str, Any]:
    """Say how a process is started that outlives its parent, and can be ended with all it has started."""
    if WINDOWS:
        # CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW
        return {"creationflags": 0x00000200 | 0x08000000}
    return {"start_new_session": True}


def end_tree(pid: int, *, force: bool) -> None:
    """End a process that was started so, with its children; by force, or as a request."""
    if WINDOWS:
        import subprocess

        words = ["taskkill", "/T", *(["/F"] if force else []), "/PID", str(pid)]
        subprocess.run(words, capture_output=True, check=False)  # noqa: S603 - the system's own
        return
    import signal

    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL if force else signal.SIGTERM)


def process_started(pid: int) -> str | None:
    """Say when a process was started: its number may be given to another. None if it is gone."""
    if WINDOWS:
        return _started_on_windows(pid)
    if sys.platform == "linux":
        return _started_on_linux(pid)
    return _started_by_ps(pid)


def _started_on_linux(pid: int) -> str | None:
    try:
        # The name of the program, in parentheses, may have anything in it.
        stat_ = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    state, started = stat_[0], stat_[19]
    return None if state in "ZX" else f"{boot}:{started}"


def _started_by_ps(pid: int) -> str | None:
    import subprocess

    words = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    state, _, started = said.partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def _started_on_windows(pid: int) -> str | None:
    import ctypes

    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    still_active, limited_information = 259, 0x1000
    handle = kernel.OpenProcess(limited_information, 0, pid)
    if not handle:
        return None
    try:
        code, times = ctypes.c_ulong(), [ctypes.c_ulonglong() for _ in range(4)]
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.GetProcessTimes(handle, *(ctypes.byref(each) for each in times))
    finally:
        kernel.CloseHandle(handle)
    return str(times[0].value) if code.value == still_active else None


def make_private_folder(path: Path) -> None:
    """Make a folder that nobody else looks into, if it is not there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def hold_file(path: Path) -> IO[bytes] | None:
    """Hold a file for as long as this process lives; None if another one does."""
    file = path.open("ab")
    try:
        if WINDOWS:
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def others_can_change(path: Path) -> str | None:
    """Say how somebody else could put another program in the place of this one; None if nobody can.

    Whoever owns a file counts, and its folder: a file can be replaced by whoever can write there.
    """
    if WINDOWS:
        return None  # access lists are beyond what can be judged here
    own = {0, os.geteuid()}
    found = path.stat()
    if found.st_uid not in own:
        return f"{path} belongs to user {found.st_uid}: have it belong to root, or to whom the agent runs as"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can write {path}: `chmod go-w {path}`"
    folder = path.parent.stat()
    sticky = folder.st_mode & stat.S_ISVTX
    if folder.st_mode & stat.S_IWOTH and not sticky:
        return f"others can write the folder {path.parent}: `chmod o-w {path.parent}`"
    return None
