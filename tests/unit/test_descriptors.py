"""How file descriptors are shared between the ports."""

import pytest

from forewarn.config import GuestSettings, OperatorSettings, Settings
from forewarn.server.descriptors import share

# Descriptors of the store, logs and webhooks; a server has about thirty after its start.
NEEDED = 32


@pytest.mark.parametrize("available", [128, 256, 1024, 20_000, 1 << 20])
def test_a_reserve_is_kept_whatever_the_limit(available: int) -> None:
    shares = share(available, Settings())
    assert shares.operators.whole >= available // 8 or shares.operators.whole == 512
    assert shares.guests >= available // 2
    assert available - shares.guests - shares.operators.whole >= NEEDED


def test_configured_numbers_count_as_far_as_there_are_enough_descriptors() -> None:
    wanted = Settings(
        guest=GuestSettings(connections=100),
        operator=OperatorSettings(connections=50, connections_per_address=7),
    )
    shares = share(20_000, wanted)
    assert (shares.guests, shares.operators.whole, shares.operators.per_address) == (100, 50, 7)
    assert share(128, wanted).guests < 100
