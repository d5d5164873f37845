"""What the server knows about its own health, for the probes."""

from collections.abc import Callable

from forewarn.server.threads.worker import Worker


class Health:
    """Whether the service works, and whether it takes requests."""

    def __init__(self, worker: Worker, *, silent: Callable[[], bool] = lambda: False) -> None:
        """Take whether the database is known not to answer."""
        self._worker = worker
        self._silent = silent
        self.leaving = False  # set when it is to stop

    def unhealthy(self) -> str | None:
        """Return why the service does not work, so that it should be restarted."""
        return None if self._worker.alive else "the worker has ended"

    def unready(self) -> str | None:
        """Return why requests should go elsewhere for now."""
        if self.leaving:
            return "stopping"
        if self._silent():
            return "the database does not answer, polls go on being answered; the log says why"
        return self._worker.trouble

    def writable(self) -> bool:
        """Return whether something could be saved when that was last tried."""
        return self._worker.writable and not self._silent()
