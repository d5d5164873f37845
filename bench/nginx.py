"""nginx with a constant answer, which is the reference for the guest endpoint."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench import guests
from bench.processes import Failed, family, free_port, running

START_SECONDS = 10.0
# The head of nginx's answers. It has the same number of headers as the guest endpoint's.
HEAD = (
    "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
    "Content-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\nConnection: keep-alive\r\n\r\n"
)
CONFIG = """
{user}
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.error.log error;
events {{ worker_connections 4096; accept_mutex off; }}
http {{
    access_log off;
    server_tokens off;
    tcp_nodelay on;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    default_type "application/json; charset=utf-8";
    server {{ listen 127.0.0.1:{same}; location / {{ return 200 '{body}'; }} }}
    server {{ listen 127.0.0.1:{unmodified}; default_type ''; location / {{ return 304; }} }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nginx:
    """A running nginx."""

    pids: list[int]
    same: int  # the port with the constant answer
    unmodified: int  # the port that answers 304


def program() -> str | None:
    """Return the path of nginx. Debian installs it in a folder that is only in root's path."""
    return shutil.which(
        "nginx", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
    )


@contextmanager
def constant(folder: Path, *, size: int) -> Iterator[Nginx]:
    """Run nginx with one worker while the block lasts. Its answers have `size` bytes, including the head."""
    found = program()
    if found is None:
        raise Failed("nginx is not installed")
    same, unmodified = free_port(), free_port()
    config = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    config.write_text(
        CONFIG.format(user=user, folder=folder, same=same, unmodified=unmodified, body="x" * body_size(size)),
        encoding="ascii",
    )
    with running((found, "-c", str(config), "-p", str(folder)), folder=folder, log="nginx.log") as process:
        _wait_for(unmodified)
        yield Nginx(pids=family(process.pid), same=same, unmodified=unmodified)


def body_size(answer: int) -> int:
    """Return the size of the body for a total size of the answer."""
    for body in range(answer):
        if len(HEAD.format(body)) + body >= answer:
            return body
    return 0


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError):
            caller = guests.call(port)
            guests.ask(caller, guests.poll(port))
            caller.close()
            return
        time.sleep(0.05)
    raise Failed("nginx did not start")
