"""The part of keystone that a client of nova needs: passwords and projects."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USER, PASSWORD = "forewarn", "secret"


@contextmanager
def a_keystone(nova: str, *, password: str = PASSWORD, lists: int = 200) -> Iterator[str]:
    """Serve a keystone for a nova; list projects with a given status."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    url = f"http://127.0.0.1:{server.server_port}"
    _Handler.url, _Handler.nova, _Handler.password, _Handler.lists = url, nova, password, lists
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    url = nova = password = ""
    lists = 200

    def do_GET(self) -> None:
        if self.path.endswith("/projects"):
            self._answer(
                self.lists, {"projects": [{"id": "6f70656e737461636b20342065766572", "name": "shop"}]}
            )
        else:
            version = {
                "id": "v3.14",
                "status": "stable",
                "links": [{"rel": "self", "href": f"{self.url}/v3"}],
            }
            self._answer(200, {"version": version})

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user = said["auth"]["identity"]["password"]["user"]
        if (user["name"], user["password"]) != (USER, self.password):
            self._answer(401, {"error": {"code": 401, "message": "wrong name or password"}})
            return
        self._answer(201, {"token": self._token()}, token=USER)

    def _token(self) -> Any:
        def reached_at(type_: str, url: str) -> Any:
            endpoint = {"id": type_, "interface": "public", "region": "one", "region_id": "one", "url": url}
            return {"id": type_, "type": type_, "name": type_, "endpoints": [endpoint]}

        return {
            "methods": ["password"],
            "user": {"id": USER, "name": USER, "domain": {"id": "default", "name": "Default"}},
            "project": {"id": "p", "name": "operations", "domain": {"id": "default", "name": "Default"}},
            "roles": [{"id": "r", "name": "admin"}],
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "catalog": [reached_at("compute", self.nova), reached_at("identity", f"{self.url}/v3")],
        }

    def _answer(self, status: int, body: Any, *, token: str = "") -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", f"{len(text)}")
        if token:
            self.send_header("X-Subject-Token", token)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""
