"""Loaded by Python where PYTHONPATH has this folder: ids are the same each time, for pictures of the page."""

import random
import uuid

_bits = random.Random(8169)  # as random as anybody sees


def _next_id() -> uuid.UUID:
    return uuid.UUID(int=_bits.getrandbits(128), version=4)


uuid.uuid4 = _next_id  # noqa: TID251 - whoever makes ids gets these
