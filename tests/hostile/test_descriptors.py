"""Descriptors: whoever takes them, both ports go on answering, and the log says what is refused."""

import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.helpers.programs.process import Program, until
from tests.helpers.service.counts import tries
from tests.hostile.attacks import (
    STRANGERS,
    Usage,
    address,
    answers,
    connections,
    fleet,
    is_open,
    operators_are_answered,
    refused,
)

# So few that an attack is soon done; the shares are the same as with the usual 1,024.
FEW = tries(256, long=1024)
GET_HALF = b"GET /v1/machines HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@contextmanager
def serving(folder: Path, *, soft: int = FEW, hard: int = FEW, machines: int = 10) -> Iterator[Program]:
    limited = ("prlimit", f"--nofile={soft}:{hard}")
    declared = fleet(folder, machines)
    with Program(folder, "--fleet", declared, clock="system", before=limited) as program:
        yield program


def warnings(program: Program, port: str) -> Sequence[str]:
    return [line for line in program.err.lines if f"{port} connections are refused" in line]


def test_the_limit_is_raised_and_what_it_allows_is_said(tmp_path: Path) -> None:
    with serving(tmp_path, soft=64, hard=4096) as program:
        soft, _ = resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE)
        assert soft == 4096
        assert program.out.wait_for("  room       for ").endswith("at once, with 4096 file descriptors")
        assert program.stop() == 0
    assert "raise the limit" not in program.err.text


def test_more_machines_than_descriptors_are_warned_of_and_do_not_silence_operators(tmp_path: Path) -> None:
    with serving(tmp_path, machines=2 * FEW) as program:
        assert f"and the fleet has {2 * FEW}: raise the limit" in program.err.text
        pollers = [address(number) for number in range(2 * FEW)]
        with connections(program.guests[0], pollers) as opened:
            until(lambda: refused(program, "guest") > 0, what="connections to be refused")
            assert operators_are_answered(program)
            kept = [client for client in opened if is_open(client)]
            assert len(kept) >= FEW // 2
            assert kept[0].get().status == 200
            assert Usage(program.process.pid).files() < FEW
        assert len(warnings(program, "guest")) == 1
        assert until(lambda: answers(program) == 200, what="an answer once others have gone")


def test_half_sent_requests_at_the_operator_port_keep_nobody_out(tmp_path: Path) -> None:
    with (
        serving(tmp_path) as program,
        connections(program.operators, ["127.0.0.1"] * 2 * FEW, send=GET_HALF),
    ):
        assert operators_are_answered(program)
        assert [answers(program, number) for number in range(10)] == [200] * 10
        assert refused(program, "operator") > FEW
        assert Usage(program.process.pid).files() < FEW
        assert len(warnings(program, "operator")) == 1


def test_machines_that_take_all_they_can_keep_no_other_machine_out(tmp_path: Path) -> None:
    greedy = [address(number) for number in range(5) for _ in range(120)]
    strangers = [address(number, network=STRANGERS) for number in range(200)]
    with (
        serving(tmp_path) as program,
        connections(program.guests[0], strangers),
        connections(program.guests[0], greedy),
    ):
        assert [answers(program, number) for number in range(5, 10)] == [200] * 5
        assert operators_are_answered(program)


def test_descriptors_that_have_run_out_are_told_and_both_ports_recover(tmp_path: Path) -> None:
    with serving(tmp_path) as program:
        assert answers(program) == 200
        pid = program.process.pid
        # None is left: the next that any part of the server opens cannot be had.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (Usage(pid).files() - 1, FEW))
        with connections(program.operators, ["127.0.0.1"]):
            until(lambda: warnings(program, "guest"), what="the guest port to say that it refuses")
            until(lambda: warnings(program, "operator"), what="the operator port to say that it refuses")
            before = Usage(pid).cpu()
            assert answers(program) == 0
            until(lambda: "no file descriptor left" in program.err.text, what="the reason")
            assert Usage(pid).cpu() - before < 1  # it does not go round in circles
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (FEW, FEW))
            until(lambda: answers(program) == 200, what="guests to be answered again")
            assert operators_are_answered(program)
            assert refused(program, "guest") > 0
            assert refused(program, "operator") > 0
