"""Records as CloudEvents 1.0 in structured JSON mode, signed according to Standard Webhooks."""

import base64
import hashlib
import hmac
import json
from datetime import datetime

from forewarn.core.model.record import Record
from forewarn.wire.answers.coding import ANSWER_CODEC
from forewarn.wire.answers.record_answers import RecordAnswer
from forewarn.wire.texts import write_time

MEDIA_TYPE = "application/cloudevents+json; charset=utf-8"
TYPE_PREFIX = "forewarn."
SECRET_PREFIX = "whsec_"  # noqa: S105 - a prefix, not a secret


def event(record: Record, *, lineage: str) -> bytes:
    """Write a record as a CloudEvent. Its source identifies the store whose number it has."""
    about = record.machine or record.host or record.group
    more = {"subject": about, "project": record.project}
    return _written(
        id_=str(record.number),
        type_=record.kind,
        at=record.at,
        lineage=lineage,
        more={key: value for key, value in more.items() if value},
        data=ANSWER_CODEC.write(RecordAnswer.of(record)),
    )


def trial(id_: str, *, lineage: str, at: datetime) -> bytes:
    """Write a test event."""
    return _written(id_=id_, type_="test", at=at, lineage=lineage, more={}, data={"test": True})


def signed_headers(body: bytes, *, id_: str, seconds: int, secret: str) -> dict[str, str]:
    """Return the headers that let a receiver verify the sender and detect repeated calls."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.new(key, f"{id_}.{seconds}.".encode() + body, hashlib.sha256).digest()
    return {
        "content-type": MEDIA_TYPE,
        "webhook-id": id_,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _written(
    *, id_: str, type_: str, at: datetime, lineage: str, more: dict[str, str], data: dict[str, object]
) -> bytes:
    attributes = {
        "specversion": "1.0",
        "id": id_,
        "source": f"urn:forewarn:{lineage.lower()}",
        "type": f"{TYPE_PREFIX}{type_}",
        "time": write_time(at),
        "datacontenttype": "application/json",
    }
    return json.dumps({**attributes, **more, "data": data}, ensure_ascii=False).encode()
