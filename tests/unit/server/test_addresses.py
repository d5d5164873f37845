"""Parsing of addresses in settings."""

import pytest

from forewarn.core.errors import Invalid
from forewarn.guest.http.listeners import Listen
from forewarn.server.addresses import guest_address, operator_address, public_origin, shown


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:8169", Listen(host="127.0.0.1", port=8169)),
        ("[::1]:80", Listen(host="::1", port=80)),
        ("localhost:0", Listen(host="localhost", port=0)),
        ("blue@10.0.0.1:80", Listen(host="10.0.0.1", port=80, network="blue")),
        ("blue@[fd00::1]:80", Listen(host="fd00::1", port=80, network="blue")),
    ],
)
def test_a_guest_address_is_a_host_and_a_port_with_an_optional_network(text: str, place: Listen) -> None:
    assert guest_address(text) == place


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "h:-1"]
)
def test_an_invalid_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Invalid, match=r"expected HOST:PORT such as 127\.0\.0\.1:8169 or \[::1\]:8169"):
        guest_address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:8170", "127.8.9.10:1", "[::1]:8170", "localhost:8170"])
def test_a_loopback_operator_address_is_accepted(text: str) -> None:
    assert shown(*operator_address(text)) == text


@pytest.mark.parametrize("text", ["0.0.0.0:8170", "192.0.2.1:8170", "[::]:8170", "example.org:8170"])
def test_a_public_operator_address_is_refused_without_tokens(text: str) -> None:
    with pytest.raises(Invalid, match="expected a loopback address"):
        operator_address(text)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://forewarn.example", "https://forewarn.example"),
        ("HTTPS://Forewarn.Example:443", "https://forewarn.example"),
        ("https://forewarn.example:8443", "https://forewarn.example:8443"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("https://192.0.2.1", "https://192.0.2.1"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
    ],
)
def test_an_origin_is_normalized_as_browsers_send_it(text: str, origin: str) -> None:
    assert public_origin(text) == origin


@pytest.mark.parametrize(
    "text",
    ["", "https://", "forewarn.example", "http://forewarn.example", "https://forewarn.example/",
     "https://forewarn.example/console/", "https://forewarn.example:", "https://forewarn.example:0",
     "https://forewarn.example:65536", "https://*.example", "https://.example", "https://a@forewarn.example",
     "https://::1", "https://[::1", "https://bücher.example", "https://forewarn example", "null", "*"],
)  # fmt: skip
def test_an_origin_that_browsers_cannot_send_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="expected https://NAME or https://NAME:PORT without a path"):
        public_origin(text)


def test_a_public_origin_needs_tokens() -> None:
    with pytest.raises(Invalid, match="without a token, anyone who reaches the port can do everything"):
        public_origin("https://forewarn.example", guarded=lambda: False)
    assert public_origin("https://localhost:8443", guarded=lambda: False) == "https://localhost:8443"
