"""`forewarn history export` writes the whole history to a file."""

import csv
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forewarn.cli.commands import history_commands
from forewarn.cli.main import app
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import RequestRefused
from forewarn.core.basic_types import Action, ProjectName
from forewarn.core.model.project import Project
from forewarn.core.retention import Pruning
from forewarn.wire.answers.record_answers import RecordsAnswer
from tests.contract.samples import record, save
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import writing
from tests.helpers.programs.process import FOREWARN
from tests.helpers.service.harness import START, Service
from tests.helpers.service.served import app_of, sample, serving

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
    first = service.records.newest() + 1
    save(service.store, records=tuple(record(first + n, reason=f"no {n}\nof it") for n in range(count)))


def numbers(service: Service) -> list[int]:
    return [each.number for each in service.history()]


def test_all_pages_are_written_oldest_first(service: Service) -> None:
    happen(service, MANY)
    assert [each["number"] for each in lines(export().stdout)] == numbers(service)


def test_records_have_the_form_of_the_api(service: Service) -> None:
    shown = CliRunner().invoke(app, ["history", "--json"]).stdout
    assert lines(export().stdout) == json.loads(shown)["records"][::-1]


def test_an_export_continues_after_a_number(service: Service) -> None:
    assert [each["number"] for each in lines(export("--since", "5").stdout)] == numbers(service)[5:]


def test_an_export_continues_from_a_time(service: Service) -> None:
    service.advance(hours=1)
    service.order("web-0", Action.RESTART)
    later = [each.number for each in service.history() if each.at > START]
    assert later
    assert [each["number"] for each in lines(export("--since", "2026-01-05T12:30:00Z").stdout)] == later
    assert "--since" in export("--since", "noon", code=2).stderr


def test_records_are_filtered_by_kind(service: Service) -> None:
    kinds = ("--kind", "host-added", "--kind", "fleet-applied")
    expected = [each.number for each in service.history() if each.kind in kinds]
    assert len({each.kind for each in service.history() if each.kind in kinds}) == len(kinds) / 2
    assert [each["number"] for each in lines(export(*kinds).stdout)] == expected
    shown = json.loads(CliRunner().invoke(app, ["history", *kinds, "--json"]).stdout)["records"]
    assert [each["number"] for each in shown] == expected[::-1]


def test_a_number_is_not_a_time(service: Service) -> None:
    refused = CliRunner().invoke(app, ["history", "--since", "5"])
    assert refused.exit_code == 2
    assert "history export --since" in refused.stderr


def test_an_export_may_be_limited_to_a_project(service: Service) -> None:
    number = service.records.newest() + 1
    save(
        service.store,
        projects=(Project(name=ProjectName("a")),),
        records=(record(number, project=ProjectName("a")),),
    )
    assert [each["number"] for each in lines(export("--project", "a").stdout)] == [number]


def test_one_record_has_a_singular(service: Service, tmp_path: Path) -> None:
    before_the_last = str(service.records.newest() - 1)
    said = export("-o", tmp_path / "last.jsonl", "--since", before_the_last).stdout
    assert said.startswith("Wrote 1 record to ")


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_resume_continues_a_file_after_its_last_whole_record(
    service: Service, tmp_path: Path, form: str
) -> None:
    file = tmp_path / f"history.{form}"
    assert f"Wrote 14 records to {file}" in export("-o", file).stdout
    happen(service, 3)
    refused = export("-o", file, code=1)
    assert "exists; choose another name, or continue it with --resume" in refused.stderr
    with file.open("a") as broken:
        broken.write('{"number": 15, "a' if form == "jsonl" else "15,2026-01-0")
    assert json.loads(export("-o", file, "--resume", "--json").stdout)["records"] == 3
    export("-o", file, "--resume")
    text = file.read_text()
    found = lines(text) if form == "jsonl" else list(csv.DictReader(text.splitlines()))
    assert [int(each["number"]) for each in found] == numbers(service)
    assert found[-1]["reason"] == ("no 2\nof it" if form == "jsonl" else "no 2 of it")


@pytest.mark.parametrize(
    "text",
    [
        "milk\neggs\n",
        "milk\neggs",
        "milk",
        "milk\n\n",
        "\n",
        '{"number": 7}\n{"n',
        '{"at": "2026-01-05T10:00:00Z", "number": 1e400}\n',
        f"{'[' * 5000}\n",
        "1,2,3\n4",
        "\udcff\n\udcff",
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_file_that_is_not_an_export_is_not_changed(tmp_path: Path, text: str, form: str) -> None:
    file = tmp_path / "notes.txt"
    held = text.encode(errors="surrogateescape")
    file.write_bytes(held)
    refused = export("-o", file, "--resume", "--format", form, code=1)
    assert f"does not end with a record as {form}" in refused.stderr
    assert file.read_bytes() == held


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_in_the_other_format_is_not_changed(tmp_path: Path, form: str) -> None:
    file = tmp_path / f"history.{form}"
    export("-o", file)
    held = file.read_text()
    other = "csv" if form == "jsonl" else "jsonl"
    assert f"a record as {other}" in export("-o", file, "--resume", "--format", other, code=1).stderr
    assert file.read_text() == held


@pytest.mark.parametrize("text", ["", f"{','.join(history_commands.COLUMNS)}\n1,2026-0"])
def test_resume_writes_a_file_without_records_from_the_start(
    service: Service, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "history.csv"
    file.write_text(text)
    export("-o", file, "--resume")
    found = csv.DictReader(file.read_text().splitlines())
    assert [int(each["number"]) for each in found] == numbers(service)


@pytest.mark.parametrize("tail", [150, 151])
def test_the_last_record_is_found_wherever_the_read_block_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: int
) -> None:
    file = tmp_path / "history.jsonl"
    lines = [
        json.dumps({"number": n, "at": "2026-01-01T00:00:00Z", "reason": "ö" * 40}, ensure_ascii=False)
        for n in (1, 2)
    ]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.setattr(history_commands, "TAIL_BYTES", tail)
    assert history_commands.last_number(file, "jsonl") == 2


def test_an_unwritable_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be written" in export("-o", tmp_path / "no" / "where", code=1).stderr
    assert "requires --output" in export("--resume", code=2).stderr


def test_continuing_after_removed_records_prints_a_warning(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_commands, "PAGE", 1)
    with writing(service.store) as tx:
        tx.records.remove([3, 4, 6])
        tx.records.set_pruning(Pruning(up_to=6))
    warned = export("--since", "2")
    assert [each["number"] for each in lines(warned.stdout)] == numbers(service)[2:]
    assert warned.stderr.count("records after 2 and up to 6 may be missing") == 1
    assert "missing" not in export("--since", "6").stderr
    assert "missing" not in export().stderr


def test_without_a_server_no_file_is_created(tmp_path: Path) -> None:
    export("-o", tmp_path / "none.jsonl", "--server", "http://127.0.0.1:1", code=3)
    assert not (tmp_path / "none.jsonl").exists()


def test_at_most_one_page_is_in_memory(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    happen(service, 50)
    sizes: list[int] = []
    get = OperatorClient.get

    def count_records(*given: Any, **wanted: Any) -> Any:
        answer = get(*given, **wanted)
        sizes.append(len(answer.json["records"]))
        return answer

    monkeypatch.setattr(history_commands, "PAGE", 10)
    monkeypatch.setattr(OperatorClient, "get", count_records)
    export()
    assert max(sizes) == 10
    assert sum(sizes) == len(numbers(service))


def test_a_reader_may_close_the_pipe_early(service: Service) -> None:
    happen(service, MANY)
    head = f"{FOREWARN} history export | head -1"
    ran = subprocess.run(["bash", "-c", head], capture_output=True, text=True, env=os.environ, check=True)
    assert json.loads(ran.stdout)["number"] == 1
    assert "Traceback" not in ran.stderr


def test_the_api_pages_upwards_from_a_number(service: Service, server: str) -> None:
    every = numbers(service)
    page = OperatorClient(server).get("/v1/history", RecordsAnswer, above=2, limit=3).json
    assert [each["number"] for each in page["records"]] == every[2:5]
    page = OperatorClient(server).get("/v1/history", RecordsAnswer, above=2, limit=3, after=page["next"]).json
    assert [each["number"] for each in page["records"]] == every[5:8]
    last = OperatorClient(server).get("/v1/history", RecordsAnswer, above=every[-2]).json
    assert ([each["number"] for each in last["records"]], last["next"]) == (every[-1:], None)
    for wrong in (-1, "x", 2**70):
        with pytest.raises(RequestRefused, match="above"):
            OperatorClient(server).get("/v1/history", RecordsAnswer, above=wrong)
