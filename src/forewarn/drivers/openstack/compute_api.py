"""nova's API, as far as the driver needs it: the one module that knows openstacksdk.

Requests go through the SDK's own connection, which knows clouds.yaml, keystone and the catalogue; their
bodies are nova's own, at one microversion, so that every answer means the same in every cloud.
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
from forewarn.drivers.openstack.sights import Migration, Server, ServerAction

# Of nova's Train, 2019. Moves to a named host are checked by the scheduler, and none is forced (2.30, 2.68);
# queued migrations can be aborted (2.65); an evacuated machine runs as before (until 2.94).
MICROVERSION = "2.79"
WITH_DETAILS = "2.84"  # of Ussuri: actions say what was wrong
OK, BAD_REQUEST, NOT_FOUND, NOT_ACCEPTABLE, CONFLICT, SERVER_ERROR = 200, 400, 404, 406, 409, 500
# Answers that say nothing of the request itself: of who asks, of how often, of what nova is or is not.
_SAYS_NOTHING = frozenset({401, NOT_ACCEPTABLE, 408, 413, 429})


class NoAnswerError(Exception):
    """The cloud cannot be asked now: whether it has heard the request is not known."""


class RefusedError(Exception):
    """nova has heard the request and will not do it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeService:
    """The nova-compute of a host."""

    id: str
    host: str
    enabled: bool
    reason: str  # why it is disabled
    up: bool
    forced_down: bool
    zone: str = ""


def check_installed() -> None:
    """Raise UnusableDriver if openstacksdk is missing."""
    if importlib.util.find_spec("openstack") is None:
        raise UnusableDriver(
            "openstacksdk is not installed: pip install 'forewarn[openstack]', and start the server again"
        )


class ComputeApi:
    """Calls of nova; from any thread."""

    def __init__(self, options: OpenStackOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._connection: Any = None  # made with the lock held, once; requests need no lock

    def user(self) -> str | None:
        """Return who asks, by keystone's id; None if there is no keystone."""
        try:
            found: str | None = self._connected().session.get_user_id()
        except _sdk_errors() as error:
            raise NoAnswerError(f"the cloud cannot be asked: {_one_line(error)}") from error
        return found

    # Servers

    def server(self, id_: str, *, now: datetime) -> tuple[Server | None, datetime]:
        """Return a server, None if there is none; and nova's time, if it says that, else ours."""
        answer = self._call("GET", f"/servers/{id_}", but=(NOT_FOUND,))
        if answer.status_code == NOT_FOUND and not _is_novas(answer):
            # A proxy, or a wrong path, knows nothing of servers: none is gone because of that.
            raise NoAnswerError("what answers with 404 is not nova: see the endpoint in the catalogue")
        found = None if answer.status_code == NOT_FOUND else Server.read(answer.json()["server"])
        said = answer.headers.get("Date")
        return found, now if said is None else parsedate_to_datetime(said)

    def actions(self, id_: str) -> list[ServerAction]:
        """Return what was done to a server, newest first, without how it ended; nothing, once it is gone."""
        answer = self._call("GET", f"/servers/{id_}/os-instance-actions", but=(NOT_FOUND,))
        found = () if answer.status_code == NOT_FOUND else answer.json()["instanceActions"]
        return [ServerAction.read(each) for each in found]

    def action(self, id_: str, request: str) -> ServerAction:
        """Return something that was done to a server, with how it ended, and why if nova is new enough."""
        url = f"/servers/{id_}/os-instance-actions/{request}"
        answer = self._call("GET", url, microversion=WITH_DETAILS, but=(NOT_ACCEPTABLE,))
        if answer.status_code == NOT_ACCEPTABLE:
            answer = self._call("GET", url)
        return ServerAction.read(answer.json()["instanceAction"])

    def migrations(self, id_: str) -> list[Migration]:
        """Return all moves of a server, newest first; its own list is empty once they are over."""
        answer = self._call("GET", f"/os-migrations?instance_uuid={id_}")
        found = [Migration.read(each) for each in answer.json()["migrations"]]
        return sorted(found, key=lambda move: move.id, reverse=True)

    def progress(self, id_: str, migration: int) -> float | None:
        """Return how much of a live migration is done, if nova knows."""
        try:
            answer = self._call("GET", f"/servers/{id_}/migrations/{migration}")
        except RefusedError:
            return None  # it is over by now
        said = answer.json()["migration"]
        total, left = said.get("memory_total_bytes"), said.get("memory_remaining_bytes")
        return None if not total or left is None else max(0.0, min(1.0, 1 - left / total))

    def write(self, id_: str, key: str, value: str) -> None:
        """Write a server's metadata."""
        self._call("PUT", f"/servers/{id_}/metadata/{key}", {"meta": {key: value}})

    def act(self, id_: str, body: Mapping[str, Any]) -> None:
        """Have nova do something to a server."""
        self._call("POST", f"/servers/{id_}/action", body)

    def delete(self, id_: str) -> None:
        """Have nova delete a server."""
        self._call("DELETE", f"/servers/{id_}")

    def abort(self, id_: str, migration: int) -> None:
        """Have nova abort a live migration."""
        self._call("DELETE", f"/servers/{id_}/migrations/{migration}")

    # Hosts

    def services(self, host: str | None = None) -> list[ComputeService]:
        """Return the compute services, of all hosts or of one."""
        which = "" if host is None else f"&host={host}"
        answer = self._call("GET", f"/os-services?binary=nova-compute{which}")
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
        """Let a host take no more servers."""
        self._call("PUT", f"/os-services/{service.id}", {"status": "disabled", "disabled_reason": reason})

    def enable(self, service: ComputeService) -> None:
        """Let a host take servers again."""
        self._call("PUT", f"/os-services/{service.id}", {"status": "enabled"})

    def force_down(self, service: ComputeService) -> None:
        """Have nova take a compute service to be down, whatever that says itself."""
        self._call("PUT", f"/os-services/{service.id}", {"forced_down": True})

    # What there is

    def all_servers(self) -> Iterator[Mapping[str, Any]]:
        """Yield all servers of all projects, as nova writes them."""
        return self._pages("/servers/detail?all_tenants=1&limit=500", "servers")

    def server_groups(self) -> list[Mapping[str, Any]]:
        """Return the server groups of all projects."""
        found: list[Mapping[str, Any]] = []
        while True:  # by offset: these have no markers
            url = f"/os-server-groups?all_projects=True&limit=500&offset={len(found)}"
            some = self._call("GET", url).json()["server_groups"]
            found += some
            if not some:
                return found

    def aggregates(self) -> list[Mapping[str, Any]]:
        """Return the host aggregates."""
        answer: list[Mapping[str, Any]] = self._call("GET", "/os-aggregates").json()["aggregates"]
        return answer

    def project_names(self) -> Mapping[str, str]:
        """Return the names of projects by their ids; none where there is no keystone, or it does not tell.

        One that is silent for a moment must not rename all projects: NoAnswerError.
        """
        try:
            answer = self._connected().identity.get("/projects")
        except _silences() as error:
            raise NoAnswerError(f"keystone cannot be asked: {_one_line(error)}") from error
        except _sdk_errors():
            return {}
        if answer.status_code >= SERVER_ERROR or answer.status_code in _SAYS_NOTHING:
            raise NoAnswerError(f"keystone answers with {answer.status_code}: {_message(answer)}")
        found = answer.json()["projects"] if answer.status_code == OK else ()
        return {each["id"]: each["name"] for each in found}

    def _pages(self, url: str, name: str) -> Iterator[Mapping[str, Any]]:
        marker = ""
        while True:
            page = self._call("GET", f"{url}{marker}").json()[name]
            yield from page
            if not page:
                return
            marker = f"&marker={page[-1]['id']}"

    # Requests

    def _call(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | None = None,
        *,
        microversion: str = MICROVERSION,
        but: Collection[int] = (),
    ) -> Any:
        """Send a request; `but` are refusals that are answers too."""
        # What a cache of clouds.yaml remembers is no word of nova's.
        given: dict[str, Any] = {"microversion": microversion, "raise_exc": False, "skip_cache": True}
        given |= {} if body is None else {"json": body}
        try:
            answer = self._connected().compute.request(url, method, **given)
        except _sdk_errors() as error:
            raise NoAnswerError(f"the cloud cannot be asked: {_one_line(error)}") from error
        if answer.status_code < BAD_REQUEST or answer.status_code in but:
            return answer
        why = _message(answer)
        if answer.status_code >= SERVER_ERROR or answer.status_code in _SAYS_NOTHING:
            raise NoAnswerError(f"nova answers with {answer.status_code}: {why}")
        raise RefusedError(answer.status_code, why)

    def _connected(self) -> Any:
        """Return the connection, made when it is first needed; keystone is asked by it."""
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
    """Return what openstacksdk raises when a cloud cannot be asked, or is not set up rightly."""
    from keystoneauth1.exceptions import ClientException
    from openstack.exceptions import SDKException

    return ClientException, SDKException, OSError


def _silences() -> tuple[type[Exception], ...]:
    """Return what openstacksdk raises when what it asks does not answer now."""
    from keystoneauth1.exceptions import ConnectFailure, HttpServerError, RetriableConnectionFailure

    return ConnectFailure, RetriableConnectionFailure, HttpServerError


def _is_novas(answer: Any) -> bool:
    """Return whether nova itself says that there is nothing: `{"itemNotFound": {"message": …}}`."""
    try:
        return "itemNotFound" in answer.json()
    except (ValueError, TypeError):
        return False


def _message(answer: Any) -> str:
    """Return what nova says of a refusal: `{"conflictingRequest": {"message": …}}`."""
    try:
        said = next(iter(answer.json().values()))
        return f"{said['message']}"
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration):
        return f"{answer.reason or 'no reason'}"


def _one_line(error: Exception) -> str:
    return " ".join(f"{error}".split()) or type(error).__name__
