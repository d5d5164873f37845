"""Signatures of deliveries, compared with the example of Standard Webhooks."""

from forewarn.wire.cloudevents import signed_headers


def test_a_delivery_is_signed_like_the_example_of_the_standard() -> None:
    body = b'{"test": 2432232314}'
    headers = signed_headers(
        body,
        id_="msg_p5jXN8AQM9LWM0D4loKWxJek",
        seconds=1614265330,
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    assert headers == {
        "content-type": "application/cloudevents+json; charset=utf-8",
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
