"""Refused connections: each is counted, and the first is logged."""

import asyncio
import logging

import pytest

from forewarn.guest.http.refusals import Limit, Refusals


def logged(caplog: pytest.LogCaptureFixture, *, calm: float, times: int) -> list[str]:
    async def refuse() -> Refusals:
        refusals = Refusals("guest", calm=calm)
        for _ in range(times):
            refusals.note(Limit.WHOLE, "there are 2")
        for _ in range(3):  # run the timers that are due
            await asyncio.sleep(0)
        return refusals

    with caplog.at_level(logging.INFO):
        refusals = asyncio.run(refuse())
    assert refusals.counts == {**dict.fromkeys(Limit, 0), Limit.WHOLE: times}
    return [record.getMessage() for record in caplog.records if record.name.endswith("refusals")]


def test_the_first_refusal_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert logged(caplog, calm=60, times=1000) == ["guest connections are refused: there are 2"]


def test_the_end_of_refusals_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert logged(caplog, calm=0, times=3) == [
        "guest connections are refused: there are 2",
        "guest connections are no longer refused (limit whole): 3 were",
    ]
