"""SDK and agent on other systems: only the package `platform` depends on the system."""

import ast
import inspect
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import forewarn
from forewarn.platform import posix, win32

SOURCE = Path(forewarn.__file__).parent
# The programs inside a machine; the server and the other commands need Linux.
FOLDERS = ("sdk", "agent", "programs", "cli/guest_side")
SERVERS = SOURCE / "programs/watched_program.py"
FILES = [path for name in FOLDERS for path in SOURCE.glob(f"{name}/**/*.py") if path != SERVERS]

# Modules and names that Python lacks on Windows, that behave differently there, or that test the system.
MODULES = "fcntl grp posix pty pwd resource spwd syslog termios tty uvloop"
NAMES = (
    "platform name fork execv kill killpg setsid setuid setgid getuid geteuid getpgid getgrouplist chown "
    "O_DIRECTORY SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 AF_UNIX add_signal_handler open_unix_connection "
    "start_unix_server register_at_fork sched_getaffinity"
)
OWNERS = {"os", "sys", "signal", "socket", "asyncio", "loop"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_platform_package_depends_on_the_system(path: Path) -> None:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import():
                found |= {each.name for each in node.names} & set(MODULES.split())
            case ast.ImportFrom():
                found |= {node.module or ""} & set(MODULES.split())
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in OWNERS:
                found |= {name} & set(NAMES.split())
            case ast.keyword(arg=("start_new_session" | "preexec_fn" | "creationflags") as name):
                found.add(name)
    assert found == set()


USED = {
    node.attr
    for path in FILES
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "system"
}


@pytest.mark.parametrize("name", sorted(USED))
def test_both_systems_define_the_same_names(name: str) -> None:
    one, other = getattr(posix, name), getattr(win32, name)
    if callable(one):
        assert inspect.signature(one) == inspect.signature(other)
        assert inspect.iscoroutinefunction(one) == inspect.iscoroutinefunction(other)
    else:
        assert type(one) is type(other)


@pytest.mark.parametrize(
    ("written", "seconds"), [("00:07", 7), ("12:34", 754), ("01:00:00", 3600), ("2-03:00:01", 183601)]
)
def test_the_age_of_a_process_is_parsed_from_ps(written: str, seconds: float) -> None:
    assert posix.seconds_of_etime(written) == seconds


def test_the_age_of_a_process_matches_ps() -> None:
    shown = posix.asked_of_ps(os.getpid(), "etime")
    age = posix.process_age(os.getpid())
    assert shown is not None
    assert age is not None
    assert abs(age - posix.seconds_of_etime(shown)) < 2


# Everything is imported once, to load the libraries, and then again as if this were Windows.
ELSEWHERE = f"""
import importlib, os, pkgutil, signal, socket, sys
sys.modules["httpx._main"] = None  # the command of httpx, which no test runs

def load():
    import forewarn, forewarn.agent, forewarn.cli, forewarn.sdk
    import forewarn.cli.guest_side, forewarn.cli.main
    for package in (forewarn.sdk, forewarn.agent, forewarn.cli.guest_side):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not found.name.endswith(("platform.posix", ".recipes", ".keeper")):
                importlib.import_module(found.name)

def run():
    from forewarn.cli.main import app
    return CliRunner().invoke(app, sys.argv[1:])

load()
from click.testing import CliRunner
run()
for name in list(sys.modules):
    if name.partition(".")[0] == "forewarn":
        del sys.modules[name]
for name in "{MODULES}".split():
    sys.modules[name] = None
for owner in (os, signal, socket):
    for name in "{NAMES}".split():
        if hasattr(owner, name) and name not in ("name", "kill", "execv"):
            delattr(owner, name)
sys.platform = "win32"
load()
assert "forewarn.platform.win32" in sys.modules
assert "forewarn.platform.posix" not in sys.modules
ran = run()
print(ran.output)
if ran.exception is not None and not isinstance(ran.exception, SystemExit):
    raise ran.exception
sys.exit(ran.exit_code)
"""

CONFIG = """
[agent]
journal = "agent.journal"
listen = "127.0.0.1:0"

[[handlers]]
name = "run"
kind = "exec"
prepare = ["{python}"]

[[handlers]]
name = "call"
kind = "webhook"
url = "http://127.0.0.1:1/"

[[handlers]]
name = "balance"
kind = "haproxy"
socket = "127.0.0.1:9999"
servers = ["web/${machine}"]

[[handlers]]
name = "stop"
kind = "process"
pid-file = "{folder}/pid"

[[handlers]]
name = "tell"
kind = "notify"
to = "me@example.org"
sender = "agent@example.org"

[[handlers]]
name = "log"
kind = "log"
"""


def elsewhere(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command without the modules and names that Windows lacks."""
    command = [sys.executable, "-c", ELSEWHERE, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Answer each line that a client sends with the same bytes."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_everything_loads_without_posix_modules(tmp_path: Path) -> None:
    with answering(b"1\n# be_name srv_name srv_admin_state\nweb web-0 0\n\n") as port:
        text = CONFIG.replace("127.0.0.1:9999", f"127.0.0.1:{port}")
        text = text.replace("{python}", sys.executable).replace("{folder}", str(tmp_path))
        (tmp_path / "agent.toml").write_text(text)
        ran = elsewhere(tmp_path, "agent", "check", "--config", "agent.toml")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "agent.toml is valid." in ran.stdout


def test_an_unavailable_handler_is_refused_by_name(tmp_path: Path) -> None:
    handler = f'[[handlers]]\nname = "run"\nkind = "exec"\nuser = "nobody"\nprepare = ["{sys.executable}"]\n'
    (tmp_path / "agent.toml").write_text(handler)
    ran = elsewhere(tmp_path, "agent", "check", "--config", "agent.toml")
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "on Windows, programs always run as the user of the agent: leave it out" in ran.stdout
