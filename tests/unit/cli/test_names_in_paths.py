"""Names in URL paths are quoted; names that would lead to another path are refused."""

from typing import Any

import pytest

from forewarn.cli.options import path_of
from forewarn.client.replies import RequestRefused
from forewarn.core.errors import Invalid
from forewarn.wire.fleet import read_fleet


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize("kind", ["machines", "groups", "hosts", "projects"])
def test_a_fleet_file_with_a_dot_segment_as_a_name_is_refused(kind: str, name: str) -> None:
    fleet: Any = {"machines": [{"name": name}]} if kind == "machines" else {kind: {name: {}}}
    with pytest.raises(Invalid, match=r"and not \. or \.\."):
        read_fleet(fleet)


def test_other_names_with_dots_and_hyphens_are_accepted() -> None:
    fleet = read_fleet(
        {
            "machines": [{"name": name, "host": "a"} for name in ("...", ".a", "-x", "a..b")],
            "hosts": {"a": {}},
        }
    )
    assert [each.name for each in fleet.machines] == ["...", ".a", "-x", "a..b"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/"])
def test_a_command_refuses_a_name_that_leads_to_another_path(name: str) -> None:
    with pytest.raises(RequestRefused, match="does not exist"):
        path_of("machine", name)


def test_commands_quote_names() -> None:
    assert path_of("machine", "-x?a=b#c%2e") == "/v1/machines/-x%3Fa%3Db%23c%252e"
