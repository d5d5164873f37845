"""Notifications to systemd: readiness, watchdog and status; see sd_notify(3)."""

from collections.abc import Mapping

from forewarn.clock import monotonic
from forewarn.core.text_formats import on_one_line
from forewarn.platform import system

# Notifications in each watchdog interval, as sd_watchdog_enabled(3) recommends.
LOOKS = 2
# The number of open events. systemd ignores it; other readers of the socket may use it.
EVENTS_KEY = "X_FOREWARN_EVENTS"


class Systemd:
    """Notifies systemd, if systemd started this process and expects notifications."""

    def __init__(self, environment: Mapping[str, str], *, pid: int) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        wanted = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID", str(pid)) == str(pid)
        self.watchdog_seconds = (
            int(wanted) / 1e6 / LOOKS if mine and wanted.isdigit() and int(wanted) else None
        )

    def ready(self, status: str) -> None:
        """Report that the program has started."""
        self._notify("READY=1", f"STATUS={status}")

    def status(self, status: str, *, events: int | None = None) -> None:
        """Report the status of the program, and the number of its open events."""
        self._notify(f"STATUS={status}", *([] if events is None else [f"{EVENTS_KEY}={events}"]))

    def alive(self) -> None:
        """Reset the watchdog."""
        self._notify("WATCHDOG=1")

    def reloading(self) -> None:
        """Report the start of a reload; `ready` reports its end."""
        self._notify("RELOADING=1", f"MONOTONIC_USEC={int(monotonic() * 1e6)}")

    def stopping(self) -> None:
        """Report that the program is stopping."""
        self._notify("STOPPING=1")

    def _notify(self, *lines: str) -> None:
        if self._address:
            system.send_locally(self._address, "\n".join(map(on_one_line, lines)).encode(errors="replace"))
