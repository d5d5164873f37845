"""`forewarn history export`: the whole history as a file."""

import csv
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from forewarn.cli import history_export
from forewarn.cli.client import Client, Refused
from forewarn.cli.main import app
from forewarn.core.model import Project
from forewarn.core.words import ProjectName
from tests.contract.samples import record, save
from tests.harness import Service, sqlite_url
from tests.process import FOREWARN
from tests.served import app_of, sample, serving

MANY = 2500


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture(autouse=True)
def server(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serving(app_of(service)) as url:
        monkeypatch.setenv("FOREWARN_SERVER", url)
        yield url


def export(*words: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["history", "export", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def happen(service: Service, count: int) -> None:
    first = service.tail.newest() + 1
    save(service.store, records=tuple(record(first + n, reason=f"no {n}\nof it") for n in range(count)))


def numbers(service: Service) -> list[int]:
    return [each.number for each in service.history()]


def test_all_records_are_written_oldest_first_over_many_pages(service: Service) -> None:
    happen(service, MANY)
    assert [each["number"] for each in lines(export().stdout)] == numbers(service)


def test_records_are_as_the_api_shows_them(service: Service) -> None:
    shown = CliRunner().invoke(app, ["history", "--json"]).stdout
    assert lines(export().stdout) == json.loads(shown)["records"][::-1]


def test_it_goes_on_after_a_number(service: Service) -> None:
    assert [each["number"] for each in lines(export("--since", "5").stdout)] == numbers(service)[5:]


def test_a_project_has_its_own(service: Service) -> None:
    number = service.tail.newest() + 1
    save(
        service.store,
        projects=(Project(name=ProjectName("a")),),
        records=(record(number, project=ProjectName("a")),),
    )
    assert [each["number"] for each in lines(export("--project", "a").stdout)] == [number]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_file_is_gone_on_with(service: Service, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"history.{form}"
    assert f"14 records written to {file}" in export("-o", file).stdout
    happen(service, 3)
    refused = export("-o", file, code=1)
    assert "exists already: give another name, or --resume" in refused.stderr
    with file.open("a") as broken:
        broken.write('{"number": 15, "a' if form == "jsonl" else "15,2026-01-0")
    assert json.loads(export("-o", file, "--resume", "--json").stdout)["records"] == 3
    export("-o", file, "--resume")
    text = file.read_text()
    found = lines(text) if form == "jsonl" else list(csv.DictReader(text.splitlines()))
    assert [int(each["number"]) for each in found] == numbers(service)
    assert found[-1]["reason"] == ("no 2\nof it" if form == "jsonl" else "no 2 of it")


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("milk\neggs\n")
    assert "does not end with a record" in export("-o", file, "--resume", code=1).stderr
    assert file.read_text() == "milk\neggs\n"
    assert "cannot be written" in export("-o", tmp_path / "no" / "where", code=1).stderr
    assert "needs a file" in export("--resume", code=2).stderr


def test_no_file_is_made_when_there_is_no_server(tmp_path: Path) -> None:
    export("-o", tmp_path / "none.jsonl", "--server", "http://127.0.0.1:1", code=3)
    assert not (tmp_path / "none.jsonl").exists()


def test_no_more_than_a_page_is_in_memory(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    happen(service, 50)
    sizes: list[int] = []
    pages = history_export._pages

    def counted(*given: Any) -> Iterator[Any]:
        for page in pages(*given):
            sizes.append(len(page))
            yield page

    monkeypatch.setattr(history_export, "PAGE", 10)
    monkeypatch.setattr(history_export, "_pages", counted)
    export()
    assert max(sizes) == 10
    assert sum(sizes) == len(numbers(service))


def test_whoever_has_seen_enough_may_go(service: Service) -> None:
    happen(service, MANY)
    head = f"{FOREWARN} history export | head -1"
    ran = subprocess.run(["bash", "-c", head], capture_output=True, text=True, env=os.environ, check=True)
    assert json.loads(ran.stdout)["number"] == 1
    assert "Traceback" not in ran.stderr


def test_the_api_pages_upwards_from_a_number(service: Service, server: str) -> None:
    every = numbers(service)
    page = Client(server).get("/v1/history", above=2, limit=3)
    assert [each["number"] for each in page["records"]] == every[2:5]
    page = Client(server).get("/v1/history", above=2, limit=3, after=page["next"])
    assert [each["number"] for each in page["records"]] == every[5:8]
    last = Client(server).get("/v1/history", above=every[-2])
    assert ([each["number"] for each in last["records"]], last["next"]) == (every[-1:], None)
    for wrong in (-1, "x", 2**70):
        with pytest.raises(Refused, match="above"):
            Client(server).get("/v1/history", above=wrong)
