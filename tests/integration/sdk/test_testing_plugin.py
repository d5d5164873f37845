"""The pytest plug-in in real runs of pytest, which find it by its entry point."""

import os
import re
import tomllib
from pathlib import Path

import pytest

import forewarn.testing

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[3]
NAMED_PROGRAM = re.compile(r"`(\w+\.py)`:\n\n```python\n(.*?)```", re.DOTALL)

# Plug-ins of our own tests that take long to load.
NOT_OURS = ("anyio", "hypothesispytest", "platformdirs", "schemathesis")

APPLICATION = '''
import threading

import pytest
from forewarn import GuestClient


class Application:
    """Takes work until an event names its machine; then hands the work over and approves."""

    def __init__(self, endpoint):
        self.client, self.open, self.handed_over = GuestClient(endpoint), ["a", "b"], []
        self.thread = threading.Thread(target=self.run)

    def run(self):
        me = self.client.instance().name
        for document in self.client.watch():
            for event in document.naming(me):
                if event.type == "Preempt" and not event.started:
                    self.handed_over, self.open = self.open, []
                    self.client.approve(event)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.client.close()
        self.thread.join()
'''


@pytest.fixture
def installed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a folder for a run with forewarn installed; its entry points come from pyproject.toml."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    site = pytester.mkdir("site")
    info = site / "forewarn_here-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: forewarn-here\nVersion: 1\n")
    lines = (f"{name} = {value}" for name, value in declared.items())
    (info / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines]))
    paths = [str(ROOT / "src"), str(site), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    # As strict as any run may be: the plug-in must not warn or leave anything open.
    without = " ".join(f"-p no:{name}" for name in ("cacheprovider", *NOT_OURS))
    pytester.makeini(f"[pytest]\nfilterwarnings = error\naddopts = {without}\n")
    return pytester


def test_an_application_that_handles_an_eviction_is_tested(installed: pytest.Pytester) -> None:
    installed.makepyfile(
        APPLICATION
        + """
def test_it_hands_over_before_it_is_evicted(forewarn):
    vm = forewarn.machine("spot-0", priority="spot")
    with Application(vm.endpoint) as application:
        event = vm.evict()
        event.wait_for_approval(timeout=30)
        assert application.handed_over == ["a", "b"]
        assert event.approved_by == ["spot-0"]
        forewarn.advance(minutes=5)
        assert vm.state == "stopped"


def test_it_ignores_a_restart(forewarn):
    vm = forewarn.machine("spot-0", priority="spot")
    with Application(vm.endpoint) as application:
        with pytest.raises(TimeoutError, match="spot-0 polled"):
            vm.restart().wait_for_approval(timeout=2)
        assert application.open == ["a", "b"]
"""
    )
    installed.runpytest_subprocess("-q").assert_outcomes(passed=2)


def test_the_how_to_works_as_printed(installed: pytest.Pytester) -> None:
    printed = (ROOT / "docs/workloads/test-your-application.md").read_text()
    programs = dict(NAMED_PROGRAM.findall(printed))
    assert len(programs) == printed.count("```python")
    for name, text in programs.items():
        (installed.path / name).write_text(text)
    tests = sum(text.count("\ndef test_") for text in programs.values())
    assert tests >= 7
    installed.runpytest_subprocess("-q").assert_outcomes(passed=tests)


def test_each_xdist_worker_has_its_own_fleets(installed: pytest.Pytester) -> None:
    installed.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_each_begins_with_nothing(forewarn, number):
            assert forewarn.events == []
            vm = forewarn.machine("web-0")
            vm.restart()
            assert len(forewarn.events) == 1
        """
    )
    installed.runpytest_subprocess("-q", "-n", "2").assert_outcomes(passed=4)


def test_a_failed_test_prints_the_log(installed: pytest.Pytester) -> None:
    installed.makepyfile(
        """
        from forewarn import GuestClient

        def test_it_fails(forewarn):
            vm = forewarn.machine("web-0")
            event = vm.restart()
            with GuestClient(vm.endpoint) as client:
                client.events()
            forewarn.advance(minutes=1)
            assert event.approved
        """
    )
    result = installed.runpytest_subprocess("-q")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*Captured forewarn*",
            "*0 m 00 s  test: orders restart of web-0",
            "*0 m 00 s  web-0: sees Reboot of web-0 (Scheduled, event *",
            "*1 m 00 s  test: has advanced the clock by 0:01:00",
        ]
    )


def test_an_error_is_shown_at_the_line_of_the_test(installed: pytest.Pytester) -> None:
    installed.makepyfile(
        """
        def test_nobody_approves(forewarn):
            forewarn.machine("web-0").restart().wait_for_approval(timeout=0)

        def test_only_spot_machines_are_evicted(forewarn):
            forewarn.machine("web-0").evict()
        """
    )
    result = installed.runpytest_subprocess("-q", "--tb=short", "--show-capture=no")
    result.assert_outcomes(failed=2)
    shown = [line for line in result.outlines if re.match(r"\S+\.py:\d+: in ", line)]
    assert [re.sub(r":\d+:", ":", line) for line in shown] == [
        "test_an_error_is_shown_at_the_line_of_the_test.py: in test_nobody_approves",
        "test_an_error_is_shown_at_the_line_of_the_test.py: in test_only_spot_machines_are_evicted",
    ]


def test_tests_may_share_a_fleet_for_the_whole_run(installed: pytest.Pytester) -> None:
    installed.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="session")
        def vm(forewarn_session):
            return forewarn_session.machine("web-0")

        def test_one(vm):
            vm.restart()

        def test_other(vm, forewarn_session, forewarn):
            assert len(forewarn_session.events) == 1
            assert forewarn.events == []
        """
    )
    installed.runpytest_subprocess("-q").assert_outcomes(passed=2)


def test_without_the_server_only_the_fixture_is_missing(installed: pytest.Pytester) -> None:
    installed.makeconftest(
        """
        import sys

        sys.modules["uvloop"] = None  # as if it were not installed
        """
    )
    installed.makepyfile(
        """
        def test_that_needs_a_fleet(forewarn):
            raise AssertionError("it has none")

        def test_that_needs_none():
            pass
        """
    )
    result = installed.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*uvloop is missing: pip install 'forewarn[[]server[]]'"])


def test_a_run_without_the_fixture_imports_nothing(
    installed: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed.makepyfile(
        """
        import sys

        def test_what_is_imported(request):
            assert request.config.pluginmanager.has_plugin("forewarn")
            mine = {name for name in sys.modules if name.startswith("forewarn.")}
            assert mine == {"forewarn.lazy", "forewarn.testing", "forewarn.testing.plugin"}
            assert not {"httpx", "sqlalchemy", "fastapi", "uvloop"} & set(sys.modules)
        """
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others that are installed here do import them
    installed.runpytest_subprocess("-q", "-p", "forewarn").assert_outcomes(passed=1)


def test_the_fixtures_are_listed(installed: pytest.Pytester) -> None:
    result = installed.runpytest_subprocess("-q", "--fixtures")
    result.stdout.fnmatch_lines(
        ["forewarn -- *", "*Yield a fleet of the test's own*", "forewarn_session [[]session scope[]] -- *"]
    )


@pytest.mark.parametrize("name", sorted(forewarn.testing._HOMES))
def test_each_name_of_the_plug_in_is_in_the_reference(name: str) -> None:
    assert getattr(forewarn.testing, name).__name__ == name
    assert name in dir(forewarn.testing)
    assert f"`{name}`" in (ROOT / "docs/reference/testing.md").read_text()


def test_an_unknown_name_of_the_plug_in_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="weather"):
        _ = forewarn.testing.weather
