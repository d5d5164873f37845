"""The request rules of the contract, one by one, over real sockets."""

import json
from collections.abc import Iterator

import pytest

from forewarn.core.basic_types import EventType
from forewarn.guest.settings import EndpointSettings
from forewarn.wire import azure
from tests.integration.guest.guest_face import EVENTS, START_DATE, Face, event, machine, serving

OLD = "/metadata/scheduledevents?api-version=2017-03-01"


@pytest.fixture(scope="module")
def face() -> Iterator[Face]:
    with serving() as face:
        yield face


# Headers of answers


def test_a_document_has_the_headers_of_the_contract(face: Face) -> None:
    answer = face.get()
    etag = answer.headers.pop("etag")
    assert answer.status == 200
    assert answer.headers == {
        "server": "IMDS/forewarn",
        "date": START_DATE,
        "content-type": "application/json; charset=utf-8",
        "content-length": str(len(answer.body)),
    }
    assert etag.startswith('"1-')


def test_an_error_has_an_id(face: Face) -> None:
    answer = face.get("/nowhere")
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.headers["x-ms-request-id"].startswith("abcdef00-0000-4000-8000-")


# The Metadata header


@pytest.mark.parametrize("header", ["Metadata: true", "metadata: True", "METADATA:TRUE", "Metadata:  true "])
def test_the_metadata_header_is_case_insensitive(face: Face, header: str) -> None:
    with face.connect() as client:
        assert client.request("GET", EVENTS, header).status == 200


@pytest.mark.parametrize("headers", [(), ("Metadata: false",), ("Metadata:",), ("Metadata: true1",)])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_metadata_header_a_request_is_refused(
    face: Face, method: str, headers: tuple[str, ...]
) -> None:
    with face.connect() as client:
        answer = client.request(method, EVENTS, *headers)
    assert (answer.status, answer.body) == (400, azure.NO_HEADER)


def test_the_first_version_does_not_need_the_metadata_header(face: Face) -> None:
    with face.connect() as client:
        assert client.request("GET", OLD).status == 200
        assert (
            client.request("POST", OLD, body=b"{}").body
            == b'{ "error": "Bad request. StartRequests is missing" }'
        )


def test_posts_without_the_metadata_header_can_be_allowed() -> None:
    with (
        serving(settings=EndpointSettings(rate=0, lenient_header_on_post=True)) as face,
        face.connect() as client,
    ):
        assert b"StartRequests" in client.request("POST", EVENTS, body=b"{}").body
        assert client.request("GET", EVENTS).body == azure.NO_HEADER


# The version


@pytest.mark.parametrize(
    "query",
    ["", "?", "?api-version", "?api-version=", "?api-version=latest", "?api-version=2020-7-1",
     "?api-version=2020-07-01&api-version=2020-07-01", "?api-version=2020-07-01&Api-Version=2019-08-01",
     "?api-version=2020-13-01", "?version=2020-07-01", "?api-version=2020-07-01#x"],
)  # fmt: skip
def test_a_version_that_is_missing_or_malformed_is_refused(face: Face, query: str) -> None:
    answer = face.get("/metadata/scheduledevents" + query)
    assert (answer.status, answer.body) == (400, azure.VERSION_INVALID[False])


@pytest.mark.parametrize("version", ["2020-07-02", "2099-01-01", "1999-01-01", "2020-09-01", "2024-07-09"])
def test_a_version_that_is_not_offered_is_not_found(face: Face, version: str) -> None:
    answer = face.get(f"/metadata/scheduledevents?api-version={version}")
    assert (answer.status, answer.body) == (404, azure.VERSION_UNKNOWN)


@pytest.mark.parametrize("version", [version.name for version in azure.offered(preview=False)])
def test_every_version_is_answered(face: Face, version: str) -> None:
    answer = face.get(f"/metadata/scheduledevents?api-version={version}")
    assert (answer.status, answer.body) == (200, b'{"DocumentIncarnation":1,"Events":[]}')


@pytest.mark.parametrize(
    "query", ["api-version=2020-07-01&format=json", "API-VERSION=2020-07-01", "x&api-version=2020%2D07-01&"]
)
def test_unknown_query_keys_are_ignored_and_keys_are_case_insensitive(face: Face, query: str) -> None:
    assert face.get(f"/metadata/scheduledevents?{query}").status == 200


@pytest.mark.parametrize("query", ["format=json&format=json", "a=1&A=2"])
def test_a_repeated_key_is_refused(face: Face, query: str) -> None:
    assert face.get(f"{EVENTS}&{query}").status == 400


def test_a_query_has_at_most_thirty_two_keys(face: Face) -> None:
    keys = "".join(f"&k{number}" for number in range(31))
    assert face.get(f"{EVENTS}{keys}").status == 200
    answer = face.get(f"{EVENTS}{keys}&one=more")
    assert (answer.status, b"too many query keys" in answer.body) == (400, True)


def test_a_request_has_at_most_sixty_four_headers(face: Face) -> None:
    more = [f"X{number}: y" for number in range(62)]  # in addition to Host and Metadata
    with face.connect() as client:
        assert client.get(EVENTS, *more).status == 200
        answer = client.get(EVENTS, *more, "One: more")
        assert (answer.status, answer.headers["connection"]) == (431, "close")
        assert client.is_closed()


def test_only_the_first_thirty_two_tags_of_a_list_count(face: Face) -> None:
    etag = face.get().headers["etag"]
    others = ", ".join(f'"{number}"' for number in range(31))
    assert face.get(EVENTS, f"If-None-Match: {others}, {etag}").status == 304
    assert face.get(EVENTS, f'If-None-Match: {others}, "31", {etag}').status == 200
    assert (
        face.get(EVENTS, f"If-None-Match: {others}", 'If-None-Match: "31"', f"If-None-Match: {etag}").status
        == 200
    )


@pytest.mark.parametrize("host", ["[::1%25x.evil]", "[::1", "127.0.0.1:x"])
def test_a_malformed_host_is_refused_and_closed(face: Face, host: str) -> None:
    with face.connect() as client:
        answer = client.request("GET", EVENTS, "Metadata: true", host=host)
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert client.is_closed()


def test_a_connection_stays_open_after_a_foreign_host(face: Face) -> None:
    with face.connect() as client:
        assert client.request("GET", EVENTS, "Metadata: true", host="evil.example").status == 400
        assert client.request("GET", EVENTS, "Metadata: true", host="[fe80::a9fe:a9fe%25eth0]").status == 200


def test_a_preview_version_is_answered_if_it_is_offered() -> None:
    preview, newest = (
        f"/metadata/scheduledevents?api-version={each}" for each in ("2024-07-09", "2020-07-01")
    )
    hint = event(EventType.SPOT_REBALANCE_RECOMMENDATION, names=("web-0",))
    with serving(settings=EndpointSettings(rate=0, preview=True)) as face:
        face.show(hint)
        (told,) = json.loads(face.get(preview).body)["Events"]
        assert (told["EventType"], told["EventStatus"]) == ("SpotRebalanceRecommendation", "Scheduled")
        assert json.loads(face.get(newest).body)["Events"] == []
        assert b"2024-07-09" in face.get("/metadata/versions").body
        assert b"2024-07-09" in face.get("/metadata/scheduledevents").body


def test_the_versions_are_listed_without_a_version(face: Face) -> None:
    answer = face.get("/metadata/versions")
    assert json.loads(answer.body) == {
        "apiVersions": [version.name for version in azure.offered(preview=False)]
    }
    with face.connect() as client:
        assert client.request("GET", "/metadata/versions").body == azure.NO_HEADER


# The path and the method


@pytest.mark.parametrize(
    "path", ["/metadata/scheduledEvents", "/METADATA/SCHEDULEDEVENTS", "/metadata/scheduledevents/"]
)
def test_the_path_is_case_insensitive_and_may_end_with_a_slash(face: Face, path: str) -> None:
    assert face.get(f"{path}?api-version=2020-07-01").status == 200


@pytest.mark.parametrize(
    "path", ["/", "/metadata", "/metadata/scheduledevents//", "//metadata/scheduledevents", "*",
             "/metadata/scheduled", "/metadata/scheduledevents/x", "/metadata/versions/x"]
)  # fmt: skip
def test_an_unknown_path_is_not_found(face: Face, path: str) -> None:
    answer = face.get(f"{path}?api-version=2020-07-01")
    assert (answer.status, answer.body) == (404, azure.NOT_FOUND)


@pytest.mark.parametrize("host", ["169.254.169.254", "127.0.0.1:80", "[::1]:8169", "localhost"])
def test_a_target_in_absolute_form_is_served(face: Face, host: str) -> None:
    assert face.get(f"http://{host}{EVENTS}").status == 200


def test_a_target_in_absolute_form_must_name_this_service(face: Face) -> None:
    assert face.get(f"http://evil.example{EVENTS}").status == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_not_allowed(face: Face, method: str) -> None:
    with face.connect() as client:
        answer = client.request(method, EVENTS, "Metadata: true")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")


def test_head_is_answered_without_a_body(face: Face) -> None:
    with face.connect() as client:
        assert client.request("HEAD", EVENTS, "Metadata: true").status == 405
        assert client.request("HEAD", "/nowhere").status == 404
        assert client.get().status == 200


# Proxies and hosts


def test_a_request_through_a_proxy_is_refused(face: Face) -> None:
    assert face.get(EVENTS, "X-Forwarded-For: 10.0.0.1").status == 400
    assert face.get(EVENTS, "x-forwarded-for:").status == 400


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "169.254.169.254:80", "localhost", "LocalHost:8169", "[::1]", "[fe80::1]:80", "::1",
     "imds.internal", "IMDS.internal:80", "127.0.0.1:"],
)  # fmt: skip
def test_a_host_that_is_an_address_or_a_known_name_is_served(host: str) -> None:
    with (
        serving(settings=EndpointSettings(rate=0, names=("imds.internal",))) as face,
        face.connect() as client,
    ):
        assert client.request("GET", EVENTS, "Metadata: true", host=host).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "[::1", "[::1]x", "[127.0.0.1]", "127.0.0.1:x",
             "localhost.evil", "2130706433", "user@127.0.0.1", "127.0.0.1, evil.example"]
)  # fmt: skip
def test_a_foreign_host_is_refused(face: Face, host: str) -> None:
    with face.connect() as client:
        assert client.request("GET", EVENTS, "Metadata: true", host=host).status == 400


def test_exactly_one_host_is_required(face: Face) -> None:
    with face.connect() as client:
        assert client.request("GET", EVENTS, "Metadata: true", "Host: 127.0.0.1").status == 400
        client.send(f"GET {EVENTS} HTTP/1.1\r\nMetadata: true\r\n\r\n".encode())
        assert client.read().status == 400


# The caller and the rate


def test_an_unknown_caller_gets_404_for_every_path(face: Face) -> None:
    with face.connect("127.0.0.99") as client:
        for target in (EVENTS, "/metadata/instance?api-version=2021-02-01", "/metadata/versions", "/nowhere"):
            answer = client.get(target)
            assert (answer.status, answer.body) == (404, azure.NOT_FOUND)


def test_a_machine_has_a_rate_limit() -> None:
    with serving(settings=EndpointSettings(rate=0.001)) as face:
        assert face.get().status == 200
        answer = face.get()
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")


def test_a_burst_is_twice_the_rate_for_each_machine() -> None:
    machines = (machine("web-0", address="127.0.0.1"), machine("web-1", address="127.0.0.2"))
    with serving(*machines, settings=EndpointSettings(rate=5)) as face, face.connect() as client:
        client.send(b"".join(client_request() for _ in range(12)))
        assert [client.read().status for _ in range(12)] == [200] * 10 + [429] * 2
        assert face.get(source="127.0.0.2").status == 200


def client_request() -> bytes:
    return f"GET {EVENTS} HTTP/1.1\r\nHost: 127.0.0.1\r\nMetadata: true\r\n\r\n".encode()


def test_all_unknown_callers_share_one_rate_limit() -> None:
    with serving(settings=EndpointSettings(rate=0.001)) as face:
        assert face.get(source="127.0.0.98").status == 404
        assert face.get(source="127.0.0.99").status == 429
        assert face.get().status == 200


# The order of the checks


@pytest.mark.parametrize(
    ("method", "target", "headers", "source", "status"),
    [
        ("PUT", "/nowhere", ("Host: evil.example", "X-Forwarded-For: x"), "127.0.0.99", 400),
        ("PUT", "/nowhere", ("Host: 127.0.0.1", "X-Forwarded-For: x"), "127.0.0.99", 400),
        ("PUT", "/nowhere", ("Host: 127.0.0.1",), "127.0.0.99", 404),
        ("PUT", "/nowhere", ("Host: 127.0.0.1",), "127.0.0.1", 404),
        ("PUT", "/metadata/scheduledevents", ("Host: 127.0.0.1",), "127.0.0.1", 405),
    ],
)
def test_checks_run_in_the_order_of_the_contract(
    face: Face, method: str, target: str, headers: tuple[str, ...], source: str, status: int
) -> None:
    with face.connect(source) as client:
        client.send("\r\n".join((f"{method} {target} HTTP/1.1", *headers, "", "")).encode())
        assert client.read().status == status


def test_the_version_is_checked_before_the_metadata_header(face: Face) -> None:
    with face.connect() as client:
        assert client.request("GET", "/metadata/scheduledevents").body == azure.VERSION_INVALID[False]


def test_only_an_error_in_the_framing_closes_the_connection(face: Face) -> None:
    with face.connect() as client:
        assert client.get("/nowhere").status == 404
        assert client.request("GET", EVENTS).status == 400
        assert client.request("PUT", EVENTS).status == 405
        assert client.get().status == 200
