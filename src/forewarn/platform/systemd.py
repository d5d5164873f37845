"""Messages to systemd: that a program is ready, that it lives, what it is doing; see sd_notify(3)."""

from collections.abc import Mapping

from forewarn.clock import monotonic
from forewarn.core.text_formats import on_one_line
from forewarn.platform import system

# Twice for each time that systemd looks, as sd_watchdog_enabled(3) advises.
LOOKS = 2
# For systemd to pass over and for whoever else listens: how many events the program cares for.
EVENTS_KEY = "X_FOREWARN_EVENTS"


class Systemd:
    """Notifies systemd, if that has started this process and listens."""

    def __init__(self, environment: Mapping[str, str], *, pid: int) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        wanted = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID", str(pid)) == str(pid)
        self.watchdog_seconds = (
            int(wanted) / 1e6 / LOOKS if mine and wanted.isdigit() and int(wanted) else None
        )

    def ready(self, status: str) -> None:
        """Send that the program is up."""
        self._notify("READY=1", f"STATUS={status}")

    def status(self, status: str, *, events: int | None = None) -> None:
        """Send what the program is doing, and how many events it cares for."""
        self._notify(f"STATUS={status}", *([] if events is None else [f"{EVENTS_KEY}={events}"]))

    def alive(self) -> None:
        """Send that the program lives."""
        self._notify("WATCHDOG=1")

    def reloading(self) -> None:
        """Send that the program reads its settings again; `ready` ends that."""
        self._notify("RELOADING=1", f"MONOTONIC_USEC={int(monotonic() * 1e6)}")

    def stopping(self) -> None:
        """Send that the program ends."""
        self._notify("STOPPING=1")

    def _notify(self, *lines: str) -> None:
        if self._address:
            system.send_locally(self._address, "\n".join(map(on_one_line, lines)).encode(errors="replace"))
