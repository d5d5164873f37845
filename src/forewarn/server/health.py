"""What the server knows about its own health, for the probes."""

from forewarn.server.threads.worker import Worker
from forewarn.store.opening.deadlines import Deadlines
from forewarn.supervision import BackgroundTask, Supervisor


class Health:
    """Whether the service works, and whether it takes requests."""

    def __init__(self, worker: Worker, deadlines: Deadlines, supervisor: Supervisor) -> None:
        self._worker = worker
        self._deadlines = deadlines
        self._supervisor = supervisor
        self.leaving = False  # set when it is to stop

    def unhealthy(self) -> str | None:
        """Return why the service does not work, so that it should be restarted."""
        if not self._worker.alive:
            return "the worker has ended"
        if self._supervisor.failing()[BackgroundTask.WORKER]:
            return "the worker keeps failing; the log says why"
        return None

    def unready(self) -> str | None:
        """Return why requests should go elsewhere for now."""
        if self.leaving:
            return "stopping"
        if self._deadlines.trouble is not None:
            return "the database does not answer, polls go on being answered; the log says why"
        return self._worker.trouble or self._supervisor.trouble()

    def writable(self) -> bool:
        """Return whether something could be saved when that was last tried."""
        return self._worker.writable and self._deadlines.trouble is None

    def silences(self) -> int:
        """Return how often the database has fallen silent."""
        return self._deadlines.silences
