"""`forewarn serve` with its SQL counted: how many statements and transactions there were so far.

Run by its path and by any version's Python: it knows nothing of forewarn but how it is started. Its first
argument is a socket; whoever connects there is sent the counts as JSON.
"""

import json
import runpy
import socket
import sys
import threading
from typing import Any

from sqlalchemy import Connection, Engine, event

_BEGINS_OR_ENDS = ("BEGIN", "COMMIT", "ROLLBACK;")
_WRITES = ("INSERT", "UPDATE", "DELETE")


class Counts:
    """What was asked of the database, by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writing: set[int] = set()  # connections in a transaction that has written, or locked a row
        self.counted = {"statements": 0, "reads": 0, "writes": 0}

    def listen(self) -> None:
        """Count what all engines do."""
        event.listen(Engine, "before_cursor_execute", self._executed)
        event.listen(Engine, "begin", self._begun)
        event.listen(Engine, "commit", self._committed)

    def _begun(self, connection: Connection) -> None:
        with self._lock:
            self._writing.discard(id(connection))

    def _executed(self, connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith(_BEGINS_OR_ENDS):
            return
        with self._lock:
            self.counted["statements"] += 1
            if statement.startswith(_WRITES) or "FOR UPDATE" in statement:
                self._writing.add(id(connection))

    def _committed(self, connection: Connection) -> None:
        with self._lock:
            self.counted["writes" if id(connection) in self._writing else "reads"] += 1


def main() -> None:
    """Count, tell, serve."""
    path, sys.argv = sys.argv[1], ["forewarn", *sys.argv[2:]]
    counts = Counts()
    counts.listen()
    ear = socket.socket(socket.AF_UNIX)
    ear.bind(path)
    ear.listen()

    def tell() -> None:
        while True:
            caller, _ = ear.accept()
            with caller:
                caller.sendall(json.dumps(counts.counted).encode())

    threading.Thread(target=tell, daemon=True).start()
    runpy.run_module("forewarn", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
