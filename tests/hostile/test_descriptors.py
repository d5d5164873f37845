"""Exhausted descriptors: both ports keep answering, and the log reports the refusals."""

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

# Few, to keep the attack short; the shares are the same as with the usual 1,024.
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


def test_the_soft_limit_is_raised_and_the_room_is_printed(tmp_path: Path) -> None:
    with serving(tmp_path, soft=64, hard=4096) as program:
        soft, _ = resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE)
        assert soft == 4096
        assert program.out.wait_for("  room       for ").endswith("at once, with 4096 file descriptors")
        assert program.stop() == 0
    assert "raise the limit" not in program.err.text


def test_more_machines_than_descriptors_cause_a_warning_and_do_not_block_operators(tmp_path: Path) -> None:
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
        assert until(lambda: answers(program) == 200, what="an answer after the others have disconnected")


def test_incomplete_requests_at_the_operator_port_block_no_caller(tmp_path: Path) -> None:
    with (
        serving(tmp_path) as program,
        connections(program.operators, ["127.0.0.1"] * 2 * FEW, send=GET_HALF),
    ):
        assert operators_are_answered(program)
        assert [answers(program, number) for number in range(10)] == [200] * 10
        assert refused(program, "operator") > FEW
        assert Usage(program.process.pid).files() < FEW
        assert len(warnings(program, "operator")) == 1


def test_machines_with_many_connections_block_no_other_machine(tmp_path: Path) -> None:
    greedy = [address(number) for number in range(5) for _ in range(120)]
    strangers = [address(number, network=STRANGERS) for number in range(200)]
    with (
        serving(tmp_path) as program,
        connections(program.guests[0], strangers),
        connections(program.guests[0], greedy),
    ):
        assert [answers(program, number) for number in range(5, 10)] == [200] * 5
        assert operators_are_answered(program)


def test_a_lack_of_descriptors_is_logged_and_both_ports_recover(tmp_path: Path) -> None:
    with serving(tmp_path) as program:
        assert answers(program) == 200
        pid = program.process.pid
        # No descriptor is left: the server cannot open another file or socket.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (Usage(pid).files() - 1, FEW))
        with connections(program.operators, ["127.0.0.1"]):
            until(lambda: warnings(program, "guest"), what="the warning of the guest port")
            until(lambda: warnings(program, "operator"), what="the warning of the operator port")
            before = Usage(pid).cpu()
            assert answers(program) == 0
            until(lambda: "no file descriptor left" in program.err.text, what="the reason")
            assert Usage(pid).cpu() - before < 1  # no busy loop
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (FEW, FEW))
            until(lambda: answers(program) == 200, what="guests to be answered again")
            assert operators_are_answered(program)
            assert refused(program, "guest") > 0
            assert refused(program, "operator") > 0
