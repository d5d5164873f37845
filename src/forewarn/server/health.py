"""What the server knows about its own health, for the probes."""

from forewarn.server.threads.worker import Worker


class Health:
    """Whether the service works, and whether it takes requests."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.leaving = False  # set when it is to stop

    def unhealthy(self) -> str | None:
        """Return why the service does not work, so that it should be restarted."""
        return None if self._worker.alive else "the worker has ended"

    def unready(self) -> str | None:
        """Return why requests should go elsewhere for now."""
        if self.leaving:
            return "stopping"
        return self._worker.trouble

    def writable(self) -> bool:
        """Return whether something could be saved when that was last tried."""
        return self._worker.writable
