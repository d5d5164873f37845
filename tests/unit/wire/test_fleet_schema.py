"""The JSON Schema accepts valid fleet files and refuses invalid ones."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import validator_for

from forewarn.wire.fleet import file_schema
from tests import ROOT
from tests.helpers.documents import reference

SCHEMA = validator_for(file_schema())
EXAMPLE = ROOT / "examples/fleet.toml"
WEB_0 = {"name": "web-0", "host": "host-1"}


def machine(**given: object) -> dict[str, Any]:
    return {"machines": [{**WEB_0, **given}]}


@pytest.mark.parametrize("file", reference.generated(), ids=lambda file: file.name)
def test_the_generated_reference_is_current(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == reference.generated()[file], "run `make reference`"


def test_the_example_is_a_fleet_file() -> None:
    SCHEMA.validate(tomllib.loads(EXAMPLE.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "fleet",
    [
        {},
        machine(**{"update-domain": 3, "port": 8301, "tags": {"role": "front"}}),
        machine(host=""),
        machine(resources={"vcpus": 4, "memory": 0.5}, labels={"gpu": "h100"}, mobility="live"),
        {"hosts": {"a": {"resources": {"vcpus": {"amount": 64, "ratio": 4}, "memory": 512}}}},
        {"hosts": {"gpu01": {"bare-metal": True}}, "machines": [{"name": "gpu01"}]},
        {"groups": {"web": {"kind": "scale-set", "policy": {"notice": "1.5h", "defer": 90}}}},
        {"projects": {"shop": {"windows": [{"start": "22:00", "length": "4h"}], "rehearsal": True}}},
    ],
)
def test_the_schema_accepts_valid_files(fleet: dict[str, Any]) -> None:
    assert SCHEMA.is_valid(fleet)


@pytest.mark.parametrize(
    "fleet",
    [
        {"machine": []},
        {"machines": [{"host": "host-1"}]},
        machine(resources={"vcpus": "4"}),
        {"hosts": {"a": {"resources": {"vcpus": {"ratio": 4}}}}},
        machine(**{"update-domian": 3}),
        machine(port=0),
        {"groups": {"web": {}}},
        {"groups": {"web 1": {"kind": "scale-set"}}},
        {"groups": {"web": {"kind": "scale-set", "policy": {"notice": "soon"}}}},
        {"projects": {"shop": {"windows": [{"start": "22:00"}]}}},
    ],
)
def test_the_schema_refuses_invalid_files(fleet: dict[str, Any]) -> None:
    assert not SCHEMA.is_valid(fleet)
