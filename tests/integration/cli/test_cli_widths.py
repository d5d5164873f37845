"""Tables at several terminal widths never cut names or times."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from click.testing import CliRunner

from forewarn.cli import terminal
from forewarn.cli.main import app
from forewarn.core.basic_types import HostName
from forewarn.core.model.declaration import HostSpec
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.served import app_of, serving

WIDTHS = (60, 80, 120, 200)
NAMES = [f"frontend-{number}.shop" for number in range(6)]
HOSTS = ("kvm-rack-a-01", "kvm-rack-a-02", "kvm-rack-b-01")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    service = Service(sqlite_url(tmp_path_factory.mktemp("widths")))
    machines = [
        machine(name, HOSTS[number % 3], group="availability-set-of-the-shop", domain=number % 3)
        for number, name in enumerate(NAMES)
    ]
    declared = fleet(group("availability-set-of-the-shop"), *machines)
    service.apply(replace(declared, hosts=tuple(HostSpec(name=HostName(name)) for name in HOSTS)))
    with serving(app_of(service)) as url:
        output_of(url, "machine", "restart", NAMES[0])
        output_of(
            url, "rollout", "start", "--all", "--hosts-at-once", "2", "--detach", "--reason", "a new kernel"
        )
        output_of(
            url, "hold", "--reason", "a change freeze over the holidays, as every year", "--host", HOSTS[2]
        )
        yield url
    service.close()


def output_of(url: str, *words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--server", url])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("rollout plan --all --hosts-at-once 2 --overlap", ("hosts", "announce_at", "start_at", "end_at")),
        ("rollout show", ("hosts", "announce_at", "start_at", "end_at", "created_at")),
        ("rollout list", ("action",)),
        ("machine list", ("name", "state", "host")),
        ("host list", ("name", "state")),
        ("group list", ("name", "kind")),
        ("event list", ("type", "status", "resources")),
        ("order list", ("action", "host")),
        ("order show ORDER", ("machine", "resources", "not_before")),
        ("holds", ("at", "reason", "by")),
        ("history --limit 20", ("at", "kind")),
        ("project list", ("name",)),
    ],
)
def test_a_table_fits_its_terminal_and_cuts_no_name_and_no_time(
    server: str, monkeypatch: pytest.MonkeyPatch, words: str, named: tuple[str, ...]
) -> None:
    words = words.replace(
        "ORDER", json.loads(output_of(server, "order", "list", "--json"))["orders"][-1]["id"]
    )
    sent = json.loads(output_of(server, *words.split(), "--json"))
    wanted = {word for value in values(sent, named) for word in value}
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        shown = output_of(server, *words.split())
        assert max(map(len, shown.splitlines())) <= width
        assert "…" not in shown
        assert wanted - set(re.split(r"[\s,~]+", shown)) == set(), shown


def values(sent: Any, keys: tuple[str, ...]) -> Iterator[list[str]]:
    """Return the values of some keys as people see them."""
    if isinstance(sent, dict):
        for key, value in sent.items():
            if key in keys and value is not None and not isinstance(value, dict):
                yield from (written(each) for each in (value if isinstance(value, list) else [value]))
            yield from values(value, keys)
    elif isinstance(sent, list):
        for each in sent:
            yield from values(each, keys)


def written(value: str) -> list[str]:
    if re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", value):
        return [f"{datetime.fromisoformat(value):%Y-%m-%d}", f"{datetime.fromisoformat(value):%H:%M:%S}"]
    return re.split(r"[\s,]+", value)
