"""The report of the bench. Its timings are not tested."""

import io
import json
from pathlib import Path

import pytest
from bench import fleets, guests, nginx, report
from bench.__main__ import PARTS, _options
from bench.computer import Computer
from bench.report import Findings, Report, Row
from rich.console import Console

from forewarn.core.fleet import applying

COMPUTER = Computer(
    processor="Abacus", cores=2, memory_gib=4.0, kernel="Linux 6.1", python="3.11.7", load=0.1
)
FAST = Row(what="a quick thing", measured="0.10 s", value=0.1, target="< 1 s", met=True)
SLOW = Row(what="a slow thing", measured="2.00 s", value=2.0, target="< 1 s", met=False, note="of three")
ASIDE = Row(what="an aside", measured="7")


def finished(*rows: Row) -> Report:
    parts = {"help": Findings(rows=rows, raw={"seconds": [0.1, 2.0]})}
    return Report(computer=COMPUTER, seconds=12.3, parts=parts)


def shown(of: Report) -> str:
    screen = io.StringIO()
    report.show(of, Console(file=screen, width=120))
    return screen.getvalue()


def test_the_table_has_a_line_for_each_row_and_names_the_computer() -> None:
    lines = shown(finished(FAST, SLOW, ASIDE)).splitlines()

    def line(text: str) -> list[str]:
        (found,) = [each for each in lines if text in each and "│" in each]
        return [cell.strip() for cell in found.strip("│").split("│")]

    assert line("a quick thing") == ["a quick thing", "0.10 s", "< 1 s", "yes"]
    assert line("a slow thing") == ["a slow thing", "2.00 s", "< 1 s", "NO"]
    assert line("an aside") == ["an aside", "7", "", ""]
    assert any("Abacus, 2 cores" in each for each in lines)
    assert "a slow thing: of three" in lines


def test_the_file_holds_the_rows_and_all_that_was_measured(tmp_path: Path) -> None:
    report.write(finished(FAST, SLOW), tmp_path / "bench.json")

    written = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))

    assert written["computer"]["processor"] == "Abacus"
    assert [(row["what"], row["value"], row["met"]) for row in written["rows"]] == [
        ("a quick thing", 0.1, True),
        ("a slow thing", 2.0, False),
    ]
    assert written["raw"] == {"help": {"seconds": [0.1, 2.0]}}


def test_only_a_row_that_missed_its_target_counts_as_missed() -> None:
    assert finished(FAST, SLOW, ASIDE).missed == [SLOW]


def test_parts_can_be_chosen() -> None:
    assert _options([]).only == list(PARTS)
    assert _options(["--only", "help,polls"]).only == ["help", "polls"]


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _options(["--only", "polls,moon"])
    assert "part 'moon' does not exist" in capsys.readouterr().err


def test_fleets_of_any_size_are_valid() -> None:
    for count in (0, 1, 7):
        declared = fleets.racks(count)
        applying.validate(declared)
        assert len(declared.machines) == count * fleets.RACK


def test_a_hundred_thousand_machines_have_addresses_of_their_own() -> None:
    assert len({fleets.address(number) for number in range(100_000)}) == 100_000


def test_the_constant_answer_of_nginx_has_the_given_length() -> None:
    for size in (170, 207, 1500):
        body = nginx.body_size(size)
        assert len(nginx.HEAD.format(body)) + body == size


def test_a_poll_is_what_curl_sends() -> None:
    assert guests.poll(8169).split(b"\r\n") == [
        b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1",
        b"Host: 127.0.0.1:8169",
        b"User-Agent: curl/7.88.1",
        b"Accept: */*",
        b"Metadata: true",
        b"",
        b"",
    ]
