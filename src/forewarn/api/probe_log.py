"""What probes are answered, logged when it changes: they ask every few seconds, also through an outage."""

import logging

log = logging.getLogger(__name__)


class ProbeLog:
    """Remembers what each probe was answered last."""

    def __init__(self) -> None:
        self._told: dict[str, str | None] = {}

    def note(self, path: str, trouble: str | None) -> None:
        """Log what a probe is answered, if it was answered something else before."""
        before = self._told.get(path)
        self._told[path] = trouble
        if trouble == before:
            return
        if trouble is None:
            log.info("GET %s is answered with 200 again", path)
        else:
            log.warning("GET %s is answered with 503: %s", path, trouble)
