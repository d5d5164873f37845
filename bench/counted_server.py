"""Run `forewarn serve` and count its SQL statements and transactions.

Any version's Python runs this file by its path, so it imports nothing from forewarn. The first argument is
the path of a socket. Each connection to the socket gets the counts as JSON.
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
    """The statements and transactions of all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writing: set[int] = set()  # connections in a transaction that has written, or locked a row
        self.counted = {"statements": 0, "reads": 0, "writes": 0}

    def listen(self) -> None:
        """Count the statements of all SQLAlchemy engines."""
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
    """Start the counter and its socket, then run forewarn."""
    path, sys.argv = sys.argv[1], ["forewarn", *sys.argv[2:]]
    counts = Counts()
    counts.listen()
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()

    def send_counts() -> None:
        while True:
            client, _ = server.accept()
            with client:
                client.sendall(json.dumps(counts.counted).encode())

    threading.Thread(target=send_counts, daemon=True).start()
    runpy.run_module("forewarn", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
