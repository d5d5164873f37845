"""Random requests against the whole OpenAPI document, for every kind of caller.

schemathesis generates valid and invalid requests, and each is sent by every caller in turn. Each answer must
match the document. No caller exceeds its role, a refused request changes nothing, and resources of other
projects stay unknown.
"""

import asyncio
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, checks
from starlette.types import ASGIApp

from forewarn.api import openapi
from forewarn.api.app import ENDPOINTS
from forewarn.api.middleware import OPEN_TO_ALL
from forewarn.clock import ManualClock
from forewarn.core import access
from forewarn.core.basic_types import Action, ProjectName
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.counts import tries
from tests.helpers.service.harness import START, TEST, Service
from tests.helpers.service.served import app_of
from tests.helpers.service.tenants import GRANTS, ROLES, A, B, bearer, let_in, two_projects

# Number of requests for each operation, valid and invalid ones.
EXAMPLES = tries(2, long=50)
BASE = "http://127.0.0.1:8170"
UNKNOWN_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
# Higher than any record: a stream from an existing number would not end.
FAR = 2**62
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
# Texts of Python and its libraries, which an error must not contain.
LIBRARY_TEXT = re.compile(r"Value error|Traceback|Errno|Expecting |codec can't")
OPERATIONS = sorted((route.path, route.method) for route in ENDPOINTS if route.method != "HEAD")
# A probe takes no parameters and no token, so it has no invalid requests.
TRIED = [
    (path, method, mode)
    for path, method in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or path not in OPEN_TO_ALL
]
RIGHTS = {(route.method, route.path): route.right for route in ENDPOINTS}
NAMES = {
    "machines": ["a-0", "b-0", "spot"],
    "groups": ["a-web", "b-web"],
    "projects": ["a", "b"],
    "hosts": ["host-1", "host-3"],
    "tokens": ["bert", "vera"],
    **{kind: [UNKNOWN_ID] for kind in ("orders", "events", "holds", "rollouts", "webhooks")},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerWithHeaders:
    """A caller. None: without a token."""

    who: access.Caller | None
    headers: dict[str, str]

    def may(self, case: Case) -> bool:
        if case.path in OPEN_TO_ALL:
            return True
        return self.who is not None and access.may(self.who, RIGHTS[case.method, case.path])


# Callers with most rights come last, because their requests change the fleet for the others.
CALLERS = [
    CallerWithHeaders(who=None, headers={}),
    *(
        CallerWithHeaders(
            who=access.Caller(name=grant.name, role=grant.role, project=grant.project),
            headers=bearer(secret),
        )
        for grant, secret in reversed(list(zip(GRANTS, ROLES.values(), strict=True)))
    ),
]


class Fleet:
    """A fleet with a resource of every kind, restored for each operation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.service = Service(sqlite_url(folder))
        self.service.apply(two_projects())
        for name in ("a-0", "b-0"):
            self.service.poll(name)
        let_in(self.service)
        # Existing resources, by the noun in a path.
        self.known = {kind: [*names] for kind, names in NAMES.items()}
        # Names that other projects must not learn.
        self.private = {name: [f"{name}-0", f"{name}-1", f"{name}-web"] for name in (A, B)}
        for name in (A, B):
            self._make(name)
        self.known["holds"].append(self.service.fleet.hosts.hold(TEST, project=None, host=None).id)
        self.known["rollouts"].append(self.service.roll("host-2").id)
        self.known["webhooks"].append(self._webhook(None))
        self.service.close()
        shutil.copy(folder / "forewarn.db", folder / "first.db")

    def _make(self, project: ProjectName) -> None:
        """Create a resource of each kind with an id in a project. One order has failed."""
        self.service.driver.failing.add(f"{project}-1")
        made: list[tuple[str, str]] = [("webhooks", self._webhook(project))]
        for name in (f"{project}-1", f"{project}-0"):
            placed = self.service.order(name, Action.RESTART)
            self.service.advance(minutes=20)
            made += [("orders", placed.order.id), *(("events", event.id) for event in placed.events)]
        for kind, id_ in made:
            self.known[kind].append(id_)
            self.private[project].append(id_)

    def _webhook(self, keeper: ProjectName | None) -> str:
        webhooks = self.service.within(keeper).webhooks
        return webhooks.add("https://hooks.example/", project=None, kinds=(), secret=None, by="test").id

    def renewed(self) -> ASGIApp:
        """Restore the first state, and return its API."""
        self.service.close()
        for old in self._folder.glob("forewarn.db*"):
            old.unlink()
        shutil.copy(self._folder / "first.db", self._folder / "forewarn.db")
        self.service.clock = ManualClock(START)
        self.service.open()
        return app_of(self.service)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    yield fleet
    fleet.service.close()


@pytest.fixture(scope="module")
def document() -> Any:
    return schemathesis.openapi.from_dict(openapi.document(ENDPOINTS))


class Api:
    """The API of the fleet."""

    def __init__(self, fleet: Fleet, runner: asyncio.Runner) -> None:
        self._fleet = fleet
        self._runner = runner
        self._renew()

    def answer(self, sent: requests.PreparedRequest, by: CallerWithHeaders) -> httpx.Response:
        """Send a request as a caller."""
        headers = {**sent.headers, **by.headers}
        self._client.cookies.clear()  # of the previous caller
        request = self._client.request(sent.method, sent.url, headers=headers, content=sent.body)
        return self._runner.run(request)

    def renew_if_revoked(self) -> None:
        """Start again if a request has revoked a token."""
        if self._fleet.service.sessions.loaded().keyring != self._tokens:
            self._renew()

    def _renew(self) -> None:
        transport = httpx.ASGITransport(app=self._fleet.renewed())
        self._client = httpx.AsyncClient(transport=transport, base_url=BASE)
        self._tokens = self._fleet.service.sessions.loaded().keyring


def aim(case: Case, fleet: Fleet, chosen: Callable[[list[str]], str]) -> None:
    """Make a request name an existing resource."""
    for name in case.path_parameters:
        case.path_parameters[name] = chosen(fleet.known[case.path.split("/")[2]])


def refuse_the_stream(case: Case) -> None:
    """Make a stream begin at an invalid record. In this process a valid one would never end."""
    case.headers.pop("last-event-id", None)
    case.query.pop("last_event_id", None)
    case.query["since"] = FAR


def written(case: Case) -> requests.PreparedRequest:
    parts = case.as_transport_kwargs(base_url=BASE)
    return requests.Request(**parts).prepare()


def check(case: Case, answer: httpx.Response, by: CallerWithHeaders) -> None:
    case.validate_response(answer, checks=CHECKS)
    assert not LIBRARY_TEXT.search(answer.text)
    # The `default` of the document is for errors of middleware. No endpoint may rely on it.
    assert str(answer.status_code) in case.operation.definition.raw["responses"]
    if not by.may(case):
        assert answer.status_code == (401 if by.who is None else 403)


def check_privacy(
    case: Case, sent: requests.PreparedRequest, answer: httpx.Response, others: list[str]
) -> None:
    """Check that a caller neither reaches nor learns of resources of other projects."""
    asked = f"{sent.url} {sent.body!r}"
    for name in others:
        if name in case.path_parameters.values():
            assert answer.is_error
        if re.search(rf"\b{name}\b", answer.text):
            assert name in asked


@pytest.mark.parametrize(
    ("path", "method", "mode"), TRIED, ids=[f"{mode.value}-{method} {path}" for path, method, mode in TRIED]
)
def test_every_answer_matches_the_document(
    fleet: Fleet, document: Any, path: str, method: str, mode: GenerationMode
) -> None:
    runner, service = asyncio.Runner(), fleet.service
    api = Api(fleet, runner)

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=document[path][method].as_strategy(generation_mode=mode), data=st.data())
    def send(case: Case, data: st.DataObject) -> None:
        if data.draw(st.sampled_from([True, True, True, False])):
            aim(case, fleet, lambda known: data.draw(st.sampled_from(known)))
        if path == "/v1/stream":
            refuse_the_stream(case)
        sent = written(case)
        for caller in CALLERS:
            before = service.records.newest()
            answer = api.answer(sent, caller)
            said = f"{sent.method} {sent.url} {sent.body!r} by {caller.who}: {answer} {answer.text}"
            try:
                check(case, answer, caller)
                if answer.is_error:
                    assert service.records.newest() == before
                if caller.who is not None and caller.who.project is not None:
                    other = B if caller.who.project == A else A
                    check_privacy(case, sent, answer, fleet.private[other])
            except BaseException as failure:
                failure.add_note(said)
                raise
        api.renew_if_revoked()

    with runner:
        send()
