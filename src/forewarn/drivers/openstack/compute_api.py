"""A client of nova's API; the only module that uses openstacksdk.

The SDK's connection reads clouds.yaml and finds nova through keystone. The requests use nova's own bodies
and one microversion, so that an answer means the same in every cloud.
"""

import importlib.util
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from forewarn.drivers.driver_setup import UnusableDriver
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.server_view import Migration, Server, ServerAction

# nova Train, 2019. The scheduler checks moves to a named host, and none is forced (2.30, 2.68). Queued
# migrations can be aborted (2.65). An evacuated server keeps its power state (until 2.94).
MICROVERSION = "2.79"
WITH_DETAILS = "2.84"  # nova Ussuri: events of actions have details
OK, BAD_REQUEST, NOT_FOUND, NOT_ACCEPTABLE, CONFLICT, SERVER_ERROR = 200, 400, 404, 406, 409, 500
# Statuses about the client or the rate, which do not answer the request itself.
_NO_ANSWER = frozenset({401, NOT_ACCEPTABLE, 408, 413, 429})


class NoNovaAnswer(Exception):
    """The cloud does not answer; it may or may not have received the request."""


class NovaRefused(Exception):
    """nova has refused the request."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeService:
    """The nova-compute service of a host."""

    id: str
    host: str
    enabled: bool
    reason: str  # why the service is disabled
    up: bool
    forced_down: bool
    zone: str = ""


def check_installed() -> None:
    """Raise UnusableDriver if openstacksdk is missing."""
    if importlib.util.find_spec("openstack") is None:
        raise UnusableDriver(
            "openstacksdk is not installed: pip install 'forewarn[openstack]', and restart the server"
        )


class ComputeApi:
    """Calls of nova; any thread may use it."""

    def __init__(self, options: OpenStackOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._connection: Any = None  # created once with the lock held; requests need no lock

    def user(self) -> str | None:
        """Return keystone's id of this client's user; None without keystone."""
        try:
            user: str | None = self._connected().session.get_user_id()
        except _sdk_errors() as error:
            raise NoNovaAnswer(f"the cloud does not answer: {_one_line(error)}") from error
        return user

    # Servers

    def server(self, id_: str, *, now: datetime) -> tuple[Server | None, datetime]:
        """Return a server or None, and nova's time; `now` if nova sends no time."""
        answer = self._call("GET", f"/servers/{id_}", expected=(NOT_FOUND,))
        if answer.status_code == NOT_FOUND and not _is_from_nova(answer):
            # A proxy or a wrong path answers 404 for every server.
            raise NoNovaAnswer("a 404 does not come from nova: check the endpoint in the service catalogue")
        server = None if answer.status_code == NOT_FOUND else Server.read(answer.json()["server"])
        date = answer.headers.get("Date")
        return server, now if date is None else parsedate_to_datetime(date)

    def actions(self, id_: str) -> list[ServerAction]:
        """Return the actions on a server, newest first, without their events; none for a deleted server."""
        answer = self._call("GET", f"/servers/{id_}/os-instance-actions", expected=(NOT_FOUND,))
        found = () if answer.status_code == NOT_FOUND else answer.json()["instanceActions"]
        return [ServerAction.read(each) for each in found]

    def action(self, id_: str, request: str) -> ServerAction:
        """Return an action with its events, and with details if nova is recent enough."""
        url = f"/servers/{id_}/os-instance-actions/{request}"
        answer = self._call("GET", url, microversion=WITH_DETAILS, expected=(NOT_ACCEPTABLE,))
        if answer.status_code == NOT_ACCEPTABLE:
            answer = self._call("GET", url)
        return ServerAction.read(answer.json()["instanceAction"])

    def migrations(self, id_: str) -> list[Migration]:
        """Return all migrations of a server, newest first, including those that have ended."""
        answer = self._call("GET", f"/os-migrations?instance_uuid={id_}")
        found = [Migration.read(each) for each in answer.json()["migrations"]]
        return sorted(found, key=lambda move: move.id, reverse=True)

    def progress(self, id_: str, migration_id: int) -> float | None:
        """Return the progress of a live migration, if known."""
        try:
            answer = self._call("GET", f"/servers/{id_}/migrations/{migration_id}")
        except NovaRefused:
            return None  # it has ended
        migration = answer.json()["migration"]
        total, left = migration.get("memory_total_bytes"), migration.get("memory_remaining_bytes")
        return None if not total or left is None else max(0.0, min(1.0, 1 - left / total))

    def write(self, id_: str, key: str, value: str) -> None:
        """Write one key of a server's metadata."""
        self._call("PUT", f"/servers/{id_}/metadata/{key}", {"meta": {key: value}})

    def act(self, id_: str, body: Mapping[str, Any]) -> None:
        """Request an action on a server."""
        self._call("POST", f"/servers/{id_}/action", body)

    def delete(self, id_: str) -> None:
        """Delete a server."""
        self._call("DELETE", f"/servers/{id_}")

    def abort(self, id_: str, migration: int) -> None:
        """Abort a live migration."""
        self._call("DELETE", f"/servers/{id_}/migrations/{migration}")

    # Hosts

    def services(self, host: str | None = None) -> list[ComputeService]:
        """Return the compute services of one host or of all."""
        query = "" if host is None else f"&host={host}"
        answer = self._call("GET", f"/os-services?binary=nova-compute{query}")
        return [
            ComputeService(
                id=f"{each['id']}",
                host=each["host"],
                enabled=each["status"] == "enabled",
                reason=each.get("disabled_reason") or "",
                up=each["state"] == "up",
                forced_down=bool(each.get("forced_down")),
                zone=each.get("zone") or "",
            )
            for each in answer.json()["services"]
        ]

    def disable(self, service: ComputeService, reason: str) -> None:
        """Stop scheduling servers to a host."""
        self._call("PUT", f"/os-services/{service.id}", {"status": "disabled", "disabled_reason": reason})

    def enable(self, service: ComputeService) -> None:
        """Schedule servers to a host again."""
        self._call("PUT", f"/os-services/{service.id}", {"status": "enabled"})

    def force_down(self, service: ComputeService) -> None:
        """Mark a compute service as down, although it may report itself as up."""
        self._call("PUT", f"/os-services/{service.id}", {"forced_down": True})

    # Inventory

    def all_servers(self) -> Iterator[Mapping[str, Any]]:
        """Yield all servers of all projects as nova's JSON."""
        url = "/servers/detail?all_tenants=1&limit=500"
        while page := self._call("GET", url).json()["servers"]:
            yield from page
            url = f"/servers/detail?all_tenants=1&limit=500&marker={page[-1]['id']}"

    def server_groups(self) -> list[Mapping[str, Any]]:
        """Return the server groups of all projects."""
        found: list[Mapping[str, Any]] = []
        url = "/os-server-groups?all_projects=True&limit=500&offset="  # server groups have no markers
        while page := self._call("GET", f"{url}{len(found)}").json()["server_groups"]:
            found += page
        return found

    def aggregates(self) -> list[Mapping[str, Any]]:
        """Return the host aggregates."""
        answer: list[Mapping[str, Any]] = self._call("GET", "/os-aggregates").json()["aggregates"]
        return answer

    def project_names(self) -> Mapping[str, str]:
        """Return the names of projects by id; none if keystone is missing or refuses.

        Raises NoNovaAnswer if keystone is unreachable, so that an outage does not rename all projects.
        """
        try:
            answer = self._connected().identity.get("/projects")
        except _outages() as error:
            raise NoNovaAnswer(f"keystone does not answer: {_one_line(error)}") from error
        except _sdk_errors():
            return {}
        if answer.status_code >= SERVER_ERROR or answer.status_code in _NO_ANSWER:
            raise NoNovaAnswer(f"keystone answers with {answer.status_code}: {_message(answer)}")
        found = answer.json()["projects"] if answer.status_code == OK else ()
        return {each["id"]: each["name"] for each in found}

    # Requests

    def _call(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | None = None,
        *,
        microversion: str = MICROVERSION,
        expected: Collection[int] = (),
    ) -> Any:
        """Send a request; raise NovaRefused for an error status that is not expected."""
        # `skip_cache`: clouds.yaml may configure a cache, which would return old answers.
        options: dict[str, Any] = {"microversion": microversion, "raise_exc": False, "skip_cache": True}
        if body is not None:
            options["json"] = body
        try:
            answer = self._connected().compute.request(url, method, **options)
        except _sdk_errors() as error:
            raise NoNovaAnswer(f"the cloud does not answer: {_one_line(error)}") from error
        if answer.status_code < BAD_REQUEST or answer.status_code in expected:
            return answer
        why = _message(answer)
        if answer.status_code >= SERVER_ERROR or answer.status_code in _NO_ANSWER:
            raise NoNovaAnswer(f"nova answers with {answer.status_code}: {why}")
        raise NovaRefused(answer.status_code, why)

    def _connected(self) -> Any:
        """Return the connection, created on first use; it authenticates with keystone."""
        import openstack

        with self._lock:
            if self._connection is None:
                self._connection = openstack.connect(
                    cloud=self._options.cloud or None,
                    region_name=self._options.region or None,
                    api_timeout=self._options.answer_for.total_seconds(),
                    app_name="forewarn",
                )
            return self._connection


def _sdk_errors() -> tuple[type[Exception], ...]:
    """Return the errors of openstacksdk for an unreachable or misconfigured cloud."""
    from keystoneauth1.exceptions import ClientException
    from openstack.exceptions import SDKException

    return ClientException, SDKException, OSError


def _outages() -> tuple[type[Exception], ...]:
    """Return the errors of openstacksdk for a service that does not answer now."""
    from keystoneauth1.exceptions import ConnectFailure, HttpServerError, RetriableConnectionFailure

    return ConnectFailure, RetriableConnectionFailure, HttpServerError


def _is_from_nova(answer: Any) -> bool:
    """Return whether nova sent a 404: `{"itemNotFound": {"message": …}}`."""
    try:
        return "itemNotFound" in answer.json()
    except (ValueError, TypeError):
        return False


def _message(answer: Any) -> str:
    """Return nova's message of an error: `{"conflictingRequest": {"message": …}}`."""
    try:
        return f"{next(iter(answer.json().values()))['message']}"
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration):
        return f"{answer.reason or 'no reason'}"


def _one_line(error: Exception) -> str:
    return " ".join(f"{error}".split()) or type(error).__name__
