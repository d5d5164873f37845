"""How file descriptors are shared out."""

import pytest

from forewarn.config import GuestSettings, OperatorSettings, Settings
from forewarn.server.descriptors import share

# What a store, logs and webhooks have open; a server that has just begun has about thirty.
NEEDED = 32


@pytest.mark.parametrize("available", [128, 256, 1024, 20_000, 1 << 20])
def test_some_are_kept_back_whatever_there_is(available: int) -> None:
    shares = share(available, Settings())
    assert shares.operators.whole >= available // 8 or shares.operators.whole == 512
    assert shares.guests >= available // 2
    assert available - shares.guests - shares.operators.whole >= NEEDED


def test_what_is_set_counts_as_far_as_there_are_enough() -> None:
    wanted = Settings(
        guest=GuestSettings(connections=100),
        operator=OperatorSettings(connections=50, connections_per_address=7),
    )
    shares = share(20_000, wanted)
    assert (shares.guests, shares.operators.whole, shares.operators.per_address) == (100, 50, 7)
    assert share(128, wanted).guests < 100
