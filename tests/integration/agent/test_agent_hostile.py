"""A hostile endpoint: handlers run, and its texts reach no other program as commands."""

import asyncio
import json
import logging
import socket
import tempfile
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.agent.agent_log import AgentLogFormatter, LogForm
from forewarn.agent.facts import LONGEST_VARIABLE, environment_of
from forewarn.agent.handling import Command, Never, Outcome, Ready, Side, Task
from forewarn.agent.setup.agent_config import parse
from forewarn.agent.setup.handler import Handler
from forewarn.cli import terminal
from forewarn.platform.systemd import Systemd
from forewarn.sdk.documents import Event
from tests.helpers.programs.agents import MACHINE, AgentHarness, event
from tests.helpers.programs.mail_server import mail_server
from tests.helpers.programs.process import PATIENCE
from tests.helpers.programs.receiver import receiving

WORST = "a\0b\r\nREADY=1\n2026-01-05 12:00:00 approved\x1b[2J\u2028\x85é;\\ " + "x" * 300_000


def worst_event(id_: str = "A") -> Event:
    return event(
        id_ + WORST,
        description=WORST,
        source=WORST,
        type=WORST,
        resources=(MACHINE, WORST),
        resource_type=WORST,
    )


def handler_of(text: str) -> Handler:
    (made,) = parse(text, environment={}).handlers
    return made


def asked(handler: Handler, about: Event) -> Outcome:
    async def run(command: Command) -> Outcome:
        raise AssertionError(f"it runs {command.words}")

    async def ask() -> Outcome:
        return await handler.does.prepare(task(about, run=run))

    return asyncio.run(ask())


def task(about: Event, **more: Any) -> Task:
    fixed = {"side": Side.PREPARE, "machine": MACHINE, "seconds_left": lambda: 60.0}
    calls = {"run": None, "say": lambda line: None, "owe": lambda thing: None}
    return Task(event=about, **{**fixed, **calls, **more})


def test_a_program_gets_the_whole_event_on_stdin(tmp_path: Path) -> None:
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\nenv -0 > {tmp_path}/env\ncat > {tmp_path}/stdin\n")
    hook.chmod(0o755)

    async def main() -> None:
        harness = AgentHarness(
            tmp_path,
            handler_of(f'[[handlers]]\nname = "h"\nkind = "exec"\nprepare = ["{hook}"]\n'),
            approver="any",
            approve_unknown=True,
        )
        harness.start()
        await harness.show(worst_event())
        async with asyncio.timeout(PATIENCE):
            while not harness.endpoint.approved:  # noqa: ASYNC110 - nobody announces what processes do
                await asyncio.sleep(0.01)
        await harness.stop()

    asyncio.run(main())
    told = dict(each.split("=", 1) for each in (tmp_path / "env").read_bytes().decode().split("\0") if each)
    assert told["FOREWARN_EVENT_DESCRIPTION"].startswith("ab\r\nREADY=1\n")
    assert len(told["FOREWARN_EVENT_DESCRIPTION"].encode()) <= LONGEST_VARIABLE
    written = json.loads((tmp_path / "stdin").read_text())
    assert (written["Description"], written["Resources"]) == (WORST, [MACHINE, WORST])


@given(st.text(), st.text())
def test_every_text_fits_into_the_environment(one: str, other: str) -> None:
    about = event(
        description=one.encode(errors="replace").decode(), id=other.encode(errors="replace").decode()
    )
    for value in environment_of(task(about)).values():
        assert "\0" not in value
        value.encode()


def test_a_log_line_stays_one_line() -> None:
    for form in LogForm:
        record = logging.makeLogRecord(
            {"msg": "%s", "levelno": 20, "args": (WORST,), "said": {"event": WORST, "n": 1}}
        )
        written = AgentLogFormatter(form, ()).format(record)
        assert len(written.splitlines()) == 1 or form is LogForm.JSON
        assert "\x1b" not in written
        assert "\n" not in written


def test_texts_reach_systemd_only_as_status(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(f"{short}/notify")
        Systemd({"NOTIFY_SOCKET": f"{short}/notify"}, pid=1).status(WORST[:99])
        said = ear.recv(65536).decode()
    assert len(said.splitlines()) == 1
    assert said.startswith("STATUS=a b  READY=1")


def test_a_header_of_a_webhook_holds_one_line() -> None:
    with receiving() as receiver:
        made = handler_of(
            f'[[handlers]]\nname = "h"\nkind = "webhook"\nurl = "{receiver.url}"\n'
            'headers = { "X-What" = "${description}" }\n'
        )
        assert asked(made, event(description=WORST[:60])) == Ready("127.0.0.1 answered 204")
        ((headers, _),) = receiver.calls
    assert headers["x-what"].startswith("a b  READY=1")


def test_a_mail_has_one_subject() -> None:
    with mail_server() as server:
        made = handler_of(
            f'[[handlers]]\nname = "h"\nkind = "notify"\nto = "ops@example.org"\nsmtp = "{server.place}"\n'
            'subject = "${description}"\n'
        )
        assert asked(made, event(description="a\r\nBcc: all@example.org\0")) == Ready(
            "mail to ops@example.org"
        )
        (mail,) = server.mails
    head = [line.rstrip() for line in mail.partition("\r\n\r\n")[0].splitlines()]
    assert "Subject: a  Bcc: all@example.org" in head
    assert not [line for line in head if line.startswith("Bcc")]


@pytest.mark.parametrize("said", ["web-0 state maint", "web-0;shutdown", "web-0\ndisable", "web-0\0", ""])
def test_texts_of_an_event_are_no_commands_for_a_balancer(said: str) -> None:
    made = handler_of(
        '[[handlers]]\nname = "h"\nkind = "haproxy"\nsocket = "/no/such.sock"\n'
        'servers = ["web/${description}"]\n'
    )
    outcome = asked(made, event(description=said))
    assert isinstance(outcome, Never)
    assert "is not a valid server name" in outcome.why


def test_texts_of_an_endpoint_become_no_metric_labels(tmp_path: Path) -> None:
    async def main() -> None:
        harness = AgentHarness(tmp_path)
        harness.start()
        await harness.show(*(event(str(each), type=f"Odd{each}") for each in range(5)), event("R"))
        assert harness.context.metrics.counted("events", "other") == 5
        assert harness.context.metrics.counted("events", "Reboot") == 1
        await harness.stop()

    asyncio.run(main())


@pytest.mark.parametrize("cells", [("\x1b[2J", "b"), ("a\rb", "\x07")])
def test_a_table_contains_no_terminal_escapes(
    cells: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.ItemTable[Sequence[str]](columns={"one": itemgetter(0), "two": itemgetter(1)}).print([cells])
    terminal.details([("one", cells[0])])
    assert not {"\x1b", "\r", "\x07"} & set(capsys.readouterr().out)
