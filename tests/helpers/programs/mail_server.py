"""A mail server that keeps received messages for the test."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class MailServer:
    """Receives mail over SMTP."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        self.refuses = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                self._talk(stream)

    def _talk(self, stream: Any) -> None:
        def say(line: str) -> None:
            stream.write(f"{line}\r\n".encode())
            stream.flush()

        say("220 mail")
        for line in stream:
            match line.split()[0].upper():
                case b"QUIT":
                    say("221 bye")
                    return
                case b"DATA":
                    say("354 go on")
                    self.mails.append("".join(each.decode() for each in iter(stream.readline, b".\r\n")))
                    say("250 taken")
                case b"RCPT" if self.refuses:
                    say("550 unknown recipient")
                case _:
                    say("250 fine")


@contextmanager
def mail_server() -> Iterator[MailServer]:
    server = MailServer()
    try:
        yield server
    finally:
        server.close()
