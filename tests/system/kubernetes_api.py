"""A small Kubernetes API server: one node, its pods, and the calls that `kubectl cordon` and `drain` need."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NODE = "web-0"
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: "{url}"}}}}]
users: [{{name: agent, user: {{token: secret}}}}]
contexts: [{{name: test, context: {{cluster: test, user: agent}}}}]
current-context: test
"""

_VERBS = ["get", "list", "patch", "delete"]
_CORE = [
    {"name": "nodes", "namespaced": False, "kind": "Node", "verbs": _VERBS},
    {"name": "pods", "namespaced": True, "kind": "Pod", "verbs": _VERBS},
    {
        "name": "pods/eviction",
        "namespaced": True,
        "kind": "Eviction",
        "group": "policy",
        "version": "v1beta1",
        "verbs": ["create"],
    },
]
_APPS = [{"name": "daemonsets", "namespaced": True, "kind": "DaemonSet", "verbs": ["get"]}]
_GROUPS = {"apps": "v1", "policy": "v1beta1"}


@dataclass
class Cluster:
    """The state of the server, and the evictions it received."""

    url: str = ""
    node: dict[str, Any] = field(default_factory=dict)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    away: bool = False  # every request is answered with 500
    protected: set[str] = field(default_factory=set)  # pods whose disruption budget forbids their eviction
    evicted: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "annotations": {}},
            "spec": {},
        }
        for name in ("shop", "cart"):
            self.add_pod(name, kind="ReplicaSet")
        self.add_pod("node-logs", kind="DaemonSet")

    def add_pod(self, name: str, *, kind: str) -> None:
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"o-{name}", "controller": True}
        self.pods[name] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"u-{name}",
                "ownerReferences": [owner],
            },
            "spec": {"nodeName": NODE, "containers": []},
            "status": {"phase": "Running"},
        }

    @property
    def cordoned(self) -> bool:
        return bool(self.node["spec"].get("unschedulable"))

    @property
    def annotations(self) -> dict[str, str]:
        return dict(self.node["metadata"]["annotations"])

    def cordon(self) -> None:
        """Cordon the node, like an administrator."""
        self.node["spec"]["unschedulable"] = True

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        if self.away:
            return _failure(HTTPStatus.INTERNAL_SERVER_ERROR, "the test refuses")
        if method == "GET" and (found := _discovery(path)) is not None:
            return HTTPStatus.OK, found
        if path == f"/api/v1/nodes/{NODE}":
            if method == "PATCH":
                _merge(self.node, body)
            return HTTPStatus.OK, self.node
        return self._of_pods(method, path)

    def _of_pods(self, method: str, path: str) -> tuple[int, Any]:
        if path == "/api/v1/pods":
            return HTTPStatus.OK, {"kind": "PodList", "apiVersion": "v1", "items": list(self.pods.values())}
        if found := re.fullmatch(r"/apis/apps/v1/namespaces/default/daemonsets/([\w-]+)", path):
            meta = {"name": found[1], "namespace": "default"}
            return HTTPStatus.OK, {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": meta}
        found = re.fullmatch(r"/api/v1/namespaces/default/pods/([\w-]+)(/eviction)?", path)
        if found is None or found[1] not in self.pods:
            return _failure(HTTPStatus.NOT_FOUND, f"{path} not found")
        if method != "POST":
            return HTTPStatus.OK, self.pods[found[1]]
        if found[1] in self.protected:
            return _failure(HTTPStatus.TOO_MANY_REQUESTS, "the disruption budget forbids it")
        del self.pods[found[1]]
        self.evicted.append(found[1])
        return HTTPStatus.CREATED, {"kind": "Status", "apiVersion": "v1", "status": "Success"}


def _discovery(path: str) -> Any:
    group_versions = [
        {"groupVersion": f"{name}/{version}", "version": version} for name, version in _GROUPS.items()
    ]
    match path.strip("/").split("/"):
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["api", "v1"]:
            return _resources("v1", _CORE)
        case ["apis"]:
            groups = [
                {"name": name, "versions": [each], "preferredVersion": each}
                for name, each in zip(_GROUPS, group_versions, strict=True)
            ]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", "apps", "v1"]:
            return _resources("apps/v1", _APPS)
        case ["apis", "policy", "v1beta1"]:
            return _resources("policy/v1beta1", [])
        case ["version"]:
            return {"major": "1", "minor": "20", "gitVersion": "v1.20.0"}
    return None


def _resources(version: str, resources: list[dict[str, Any]]) -> Any:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": resources,
    }


def _failure(status: HTTPStatus, message: str) -> tuple[int, Any]:
    said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": status.value}
    reason = {404: "NotFound", 429: "TooManyRequests"}.get(status.value, "InternalError")
    return status, {**said, "message": message, "reason": reason}


def _merge(into: dict[str, Any], patch: dict[str, Any]) -> None:
    """Merge like a JSON merge patch: null removes a key."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


@contextmanager
def kubernetes(folder: Path) -> Iterator[Cluster]:
    """Serve a cluster, and write a kubeconfig for it into a folder."""
    cluster = Cluster()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length)
            body = json.loads(sent) if "json" in self.headers.get("Content-Type", "") and sent else None
            with lock:
                status, answer = cluster.answer(self.command, urlsplit(self.path).path, body)
                content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the library's names

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    cluster.url = f"http://127.0.0.1:{server.server_port}"
    (folder / "kubeconfig").write_text(KUBECONFIG.format(url=cluster.url))
    try:
        yield cluster
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
