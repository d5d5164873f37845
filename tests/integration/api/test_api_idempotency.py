"""Requests with an Idempotency-Key are carried out once and answered each time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from forewarn.control import idempotent_calls
from forewarn.core.basic_types import Action
from forewarn.core.errors import Unavailable
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of, sample
from tests.helpers.service.tenants import A_USER, OPERATOR, let_in, two_projects

RESTART = "/v1/machines/web-0/restart"
DAY = 24 * 3600.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    service.poll("web-0")
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def post(api: Api, path: str, body: Any = None, *, key: str = "key-1", **headers: str) -> httpx.Response:
    return api("POST", path, json=body, headers={"Idempotency-Key": key, **headers})


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["message"]


def orders(api: Api) -> list[str]:
    return [order["id"] for order in api("GET", "/v1/orders").json()["orders"]]


def test_a_repeated_call_with_the_same_key_returns_the_first_answer(service: Service, api: Api) -> None:
    first = post(api, RESTART, {"reason": "wedged"})
    records = service.history()
    again = post(api, RESTART, {"reason": "wedged"})
    assert (first.status_code, again.status_code, again.content) == (202, 202, first.content)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert orders(api) == [first.json()["order"]["id"]]
    assert service.history() == records
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"


def test_without_a_key_a_call_is_carried_out_each_time(api: Api) -> None:
    times = [api("POST", "/v1/clock/advance", json={"seconds": 1}).json()["now"] for _ in range(2)]
    assert times[0] < times[1]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (RESTART, {"reason": "another"}),
        (RESTART, None),
        (f"{RESTART}?project=default", {"reason": "wedged"}),
        ("/v1/machines/web-0/redeploy", {"reason": "wedged"}),
    ],
)
def test_a_key_of_another_request_is_refused(api: Api, path: str, body: Any) -> None:
    first = post(api, RESTART, {"reason": "wedged"})
    status, message = error_of(post(api, path, body))
    assert (status, "was used for another request" in message) == (409, True)
    assert orders(api) == [first.json()["order"]["id"]]


@pytest.mark.parametrize("key", ["", "a b", "ä".encode().decode("latin-1"), "k" * 256])
def test_a_key_has_only_visible_characters_and_a_maximum_length(api: Api, key: str) -> None:
    sent = {"Idempotency-Key": key.encode("latin-1")}
    refused = api("POST", RESTART, headers=sent)
    message = "Idempotency-Key: expected one key of 1 to 255 visible ASCII characters"
    assert error_of(refused) == (400, message)
    assert orders(api) == []
    assert post(api, RESTART, key="~" * 255).status_code == 202


def test_two_keys_in_one_call_are_refused(api: Api) -> None:
    refused = api("POST", RESTART, headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")])
    assert refused.status_code == 400


def test_a_refusal_is_not_remembered(service: Service, api: Api) -> None:
    in_the_way = service.order("web-0", Action.RESTART)
    assert post(api, RESTART).status_code == 409
    service.orders.cancel_order(in_the_way.order.id, by="test")
    assert post(api, RESTART).status_code == 202


def test_a_call_that_fails_to_commit_can_be_repeated(
    service: Service, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise Unavailable("the disk is full")

    before = service.history()
    with monkeypatch.context() as patched:
        patched.setattr("forewarn.store.queries.callers.AnswerChanges.save", full)
        assert post(api, RESTART).status_code == 503
    assert service.history() == before
    assert post(api, RESTART).status_code == 202
    assert len(orders(api)) == 1


def test_a_rolled_back_call_does_not_lose_the_notice_of_guests(service: Service, api: Api) -> None:
    event = post(api, RESTART).json()["event"]["id"]
    service.fetch("web-0")
    assert (
        post(api, "/v1/machines/web-0/restart", key="key-2").status_code == 409
    )  # it was saved and rolled back
    shown = api("GET", f"/v1/events/{event}").json()["event"]["notices"]
    assert [(each["machine"], each["late"]) for each in shown] == [("web-0", False)]
    service.fleet.guests.enable(service.machine("db").group)  # the next transaction
    with service.store.read() as snapshot:
        assert event in snapshot.work.notices([event])


def test_a_key_belongs_to_its_caller(tmp_path: Path) -> None:
    service = Service(sqlite_url(tmp_path))
    service.apply(two_projects())
    let_in(service)
    api = Api(app_of(service))
    path = "/v1/machines/a-0/restart"
    first = post(api, path, Authorization=f"Bearer {A_USER}")
    assert first.status_code == 202
    others = post(api, path, Authorization=f"Bearer {OPERATOR}")
    assert (others.status_code, first.json()["order"]["id"] in others.text) == (409, True)
    assert "Idempotency" not in others.text  # refused because of the order, not the key
    assert post(api, path, Authorization=f"Bearer {A_USER}").content == first.content
    service.close()


def test_saved_answers_survive_a_restart(service: Service) -> None:
    first = post(Api(app_of(service)), RESTART)
    service.restart()
    again = post(Api(app_of(service)), RESTART)
    assert again.content == first.content
    assert len(orders(Api(app_of(service)))) == 1


def test_answers_are_kept_for_a_day_of_real_time(service: Service, api: Api) -> None:
    turn = {"seconds": 60}
    first = post(api, "/v1/clock/advance", turn)
    service.advance(days=3)
    service.real += DAY - 1
    service.answering.prune()
    assert post(api, "/v1/clock/advance", turn).content == first.content
    service.real += 1
    again = post(api, "/v1/clock/advance", turn)
    assert (again.status_code, again.content == first.content) == (200, False)


def test_old_answers_are_removed_in_batches(
    service: Service, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotent_calls, "BATCH", 2)
    for number in range(3):
        post(api, "/v1/clock/advance", {"seconds": 1}, key=f"old-{number}")
    service.real += DAY + 1
    post(api, "/v1/clock/advance", {"seconds": 1}, key="young")
    assert [service.answering.prune() for _ in range(3)] == [True, False, False]
    assert kept(service) == 1


def test_the_number_of_saved_answers_per_caller_is_limited(
    service: Service, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotent_calls, "MOST_ANSWERS", 2)
    monkeypatch.setattr(idempotent_calls, "PRUNE_AFTER", 4)
    service.answering.prune()
    for number in range(4):
        service.real += 1
        post(api, "/v1/clock/advance", {"seconds": 1}, key=f"key-{number}")
        service.answering.prune()
    assert kept(service) == 2
    now = service.clock.now()
    post(api, "/v1/clock/advance", {"seconds": 1}, key="key-3")
    assert service.clock.now() == now


def kept(service: Service) -> int:
    with service.store.read() as snapshot:
        return len(snapshot.answers.surplus("operator (operator)", keep=0, limit=100))


def test_an_answer_that_is_too_large_is_not_saved_and_its_call_not_repeated(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotent_calls, "LARGEST_ANSWER", 10)
    first = post(api, RESTART)
    assert first.status_code == 202
    status, message = error_of(post(api, RESTART))
    assert (status, "too large to save" in message) == (409, True)
    assert orders(api) == [first.json()["order"]["id"]]


def test_a_repeated_advance_moves_the_clock_once(service: Service, api: Api) -> None:
    first = post(api, "/v1/clock/advance", {"seconds": 900.5})
    assert post(api, "/v1/clock/advance", {"seconds": 900.5}).content == first.content
    assert first.json() == api("GET", "/v1/clock").json()


def test_a_repeated_advance_completes_an_interrupted_one(
    service: Service, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(service.time, "run_to", lambda _: None)
        first = post(api, "/v1/clock/advance", {"seconds": 900})
    service.advance(seconds=300)  # it was interrupted here
    assert post(api, "/v1/clock/advance", {"seconds": 900}).content == first.content
    assert api("GET", "/v1/clock").json() == first.json()


def test_a_repeated_call_shows_a_secret_again_without_storing_it(
    service: Service, api: Api, tmp_path: Path
) -> None:
    body = {"name": "olga", "role": "operator"}
    first = post(api, "/v1/tokens", body, key="a-key-of-mine")
    secret = first.json()["secret"]
    again = post(api, "/v1/tokens", body, key="a-key-of-mine", Authorization=f"Bearer {secret}")
    assert error_of(again)[0] == 409  # another caller, because no token existed at the first request
    second = {"name": "vera", "role": "viewer"}
    made = post(api, "/v1/tokens", second, key="b-key", Authorization=f"Bearer {secret}")
    assert (
        post(api, "/v1/tokens", second, key="b-key", Authorization=f"Bearer {secret}").content == made.content
    )
    service.close()
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for hidden in (secret, made.json()["secret"], "a-key-of-mine"):
        assert hidden.encode() not in stored
    service.open()


def test_a_dry_run_does_not_use_up_its_key(api: Api) -> None:
    plan = {"hosts": "all", "action": "freeze", "dry_run": True}
    first = post(api, "/v1/rollouts", plan)
    assert (first.status_code, post(api, "/v1/rollouts", plan).content) == (200, first.content)
    assert api("GET", "/v1/rollouts").json()["rollouts"] == []
    assert post(api, "/v1/rollouts", plan | {"dry_run": False}).status_code == 202


def test_a_repeated_webhook_test_returns_the_first_answer(api: Api) -> None:
    added = post(api, "/v1/webhooks", {"url": "http://127.0.0.1:9/"}).json()["webhook"]["id"]
    path = f"/v1/webhooks/{added}/test"
    first = post(api, path, key="key-2")
    again = post(api, path, key="key-2")
    assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
    assert post(api, path, key="key-1").status_code == 409


def test_every_post_of_the_document_takes_a_key(api: Api) -> None:
    document = api("GET", "/openapi.json").json()
    calls = [(path, verb, each) for path, verbs in document["paths"].items() for verb, each in verbs.items()]
    for path, verb, call in calls:
        names = [each["name"] for each in call.get("parameters", ())]
        assert ("Idempotency-Key" in names) == (verb == "post"), path
        assert verb != "post" or "409" in call["responses"], path
