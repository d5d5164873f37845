"""Which endpoint the agent stays with, and when it goes to another."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from forewarn.agent.care import current_endpoint
from forewarn.agent.care.current_endpoint import CurrentEndpoint
from forewarn.sdk.documents import Document
from forewarn.sdk.guest_errors import EndpointRefused
from tests.helpers.programs.process import PATIENCE
from tests.helpers.service.scripted import answer, scripted

AWAY = answer(503)


def told(incarnation: int) -> bytes:
    return answer(200, b'{"DocumentIncarnation":%d,"Events":[]}' % incarnation)


async def first(documents: AsyncIterator[Document]) -> int:
    async with asyncio.timeout(PATIENCE):
        return (await anext(documents)).incarnation


def test_an_endpoint_that_refuses_is_given_up_for_another() -> None:
    async def main() -> None:
        with scripted(told(1), answer(403)) as one, scripted(AWAY, told(2)) as other:
            known = CurrentEndpoint([one.url, other.url])
            with pytest.raises(EndpointRefused):
                await first(known.watch())
            assert await first(known.watch()) == 2
            assert known.url == other.url
            await known.close()

    asyncio.run(main())


def test_an_endpoint_that_was_found_and_falls_silent_is_looked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(current_endpoint, "SWITCH_SECONDS", 0.02)

    async def main() -> None:
        with scripted(told(1), b"") as one, scripted(told(2)) as other:
            monkeypatch.setenv("FOREWARN_ENDPOINT", one.url)
            known = CurrentEndpoint([])
            documents = known.watch()
            assert await first(documents) == 1
            monkeypatch.setenv("FOREWARN_ENDPOINT", other.url)
            assert await first(documents) == 2
            await known.close()

    asyncio.run(main())


def test_the_only_endpoint_is_not_given_up() -> None:
    async def main() -> None:
        with scripted(answer(403), told(3)) as only:
            known = CurrentEndpoint([only.url])
            with pytest.raises(EndpointRefused):
                await first(known.watch())
            assert await first(known.watch()) == 3
            await known.close()

    asyncio.run(main())
