"""How long a webhook waits after failures."""

from forewarn.server.threads.pusher import Pace


def test_the_wait_doubles_up_to_an_hour_with_jitter() -> None:
    waits = [{Pace().after(failures) for _ in range(50)} for failures in (1, 2, 3, 12, 13, 10_000)]
    for wait, longest in zip(waits, (1, 2, 4, 2048, 3600, 3600), strict=True):
        assert min(wait) >= longest / 2
        assert max(wait) <= longest
        assert len(wait) > 1
