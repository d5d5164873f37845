"""Histograms of durations."""

from forewarn.durations import BOUNDS, Durations


def test_the_histogram_is_cumulative() -> None:
    durations = Durations()
    for seconds in (0.0, BOUNDS[0], 0.003, 100.0):
        durations.note("show", "2xx", seconds=seconds)
    durations.note("show", "4xx", seconds=0.2)
    seen = durations.seen()
    assert list(seen) == [("show", "2xx"), ("show", "4xx")]
    counted = dict(zip((*BOUNDS, "all"), seen["show", "2xx"].up_to, strict=True))
    assert (counted[0.001], counted[0.0025], counted[0.005], counted[10.0], counted["all"]) == (2, 2, 3, 3, 4)
    assert round(seen["show", "2xx"].seconds, 4) == 100.004
