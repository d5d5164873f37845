"""When the agent keeps its endpoint, and when it switches to another."""

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


def document(incarnation: int) -> bytes:
    return answer(200, b'{"DocumentIncarnation":%d,"Events":[]}' % incarnation)


async def first(documents: AsyncIterator[Document]) -> int:
    async with asyncio.timeout(PATIENCE):
        return (await anext(documents)).incarnation


def test_the_agent_leaves_an_endpoint_that_refuses() -> None:
    async def main() -> None:
        with scripted(document(1), answer(403)) as one, scripted(AWAY, document(2)) as other:
            known = CurrentEndpoint([one.url, other.url])
            with pytest.raises(EndpointRefused):
                await first(known.watch())
            assert await first(known.watch()) == 2
            assert known.url == other.url
            await known.close()

    asyncio.run(main())


def test_a_silent_discovered_endpoint_is_discovered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(current_endpoint, "SWITCH_SECONDS", 0.02)

    async def main() -> None:
        with scripted(document(1), b"") as one, scripted(document(2)) as other:
            monkeypatch.setenv("FOREWARN_ENDPOINT", one.url)
            known = CurrentEndpoint([])
            documents = known.watch()
            assert await first(documents) == 1
            monkeypatch.setenv("FOREWARN_ENDPOINT", other.url)
            assert await first(documents) == 2
            await known.close()

    asyncio.run(main())


def test_the_agent_keeps_its_only_endpoint() -> None:
    async def main() -> None:
        with scripted(answer(403), document(3)) as only:
            known = CurrentEndpoint([only.url])
            with pytest.raises(EndpointRefused):
                await first(known.watch())
            assert await first(known.watch()) == 3
            await known.close()

    asyncio.run(main())
