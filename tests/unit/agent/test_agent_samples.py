"""Documents in the form of real responses of all seven versions: the agent handles their events."""

import asyncio
import json
from pathlib import Path

import pytest

from forewarn.agent.facts import as_wire
from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Over, TakenUp
from forewarn.agent.setup.handler import Handler
from forewarn.sdk.documents import parse_document, parse_event
from tests import ROOT
from tests.helpers.programs.agents import AgentHarness, Doing

SAMPLES = sorted((ROOT / "tests/unit/samples").glob("*.json"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_handlers_prepare_and_recover_for_every_event_of_a_sample(path: Path, tmp_path: Path) -> None:
    document = parse_document(path.read_bytes(), version=path.name[:10])

    async def main() -> None:
        does = Doing()
        harness = AgentHarness(tmp_path, Handler(name="drain", kind="test", does=does))
        harness.machine = document.events[0].resources[0] if document.events else "web-0"
        harness.start()
        await harness.show(*document.events, incarnation=document.incarnation)
        own = [event.id for event in document.naming(harness.machine)]
        assert [entry.event.id for entry in harness.entries if isinstance(entry, TakenUp)] == own
        assert does.calls == [(Side.PREPARE, id_, 1) for id_ in own]
        await harness.show(incarnation=document.incarnation + 1)
        assert len([entry for entry in harness.entries if isinstance(entry, Over)]) == len(own)
        await harness.stop()

    asyncio.run(main())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_an_event_survives_the_journal(path: Path) -> None:
    for event in parse_document(path.read_bytes(), version=path.name[:10]).events:
        assert parse_event(json.loads(json.dumps(as_wire(event)))) == event
