"""The agent's config: valid fields, and the errors of invalid ones."""

from pathlib import Path

import pytest

from forewarn.agent.handlers.exec import Exec
from forewarn.agent.handling import Side
from forewarn.agent.setup import recipe
from forewarn.agent.setup.agent_config import AgentSettings, Config, load, load_settings, parse
from forewarn.agent.setup.config_text import line_of
from forewarn.agent.setup.handler import OnFailure, OnRestart
from forewarn.agent.setup.summary import explain, grouped, short_notice_warning
from forewarn.agent.verdicts import ApprovePolicy, Approver
from forewarn.core.basic_types import EventType, Source
from forewarn.core.errors import Invalid, NotFound

FULL = """
[agent]
endpoint = "auto"
machine = "auto"
journal = "agent.journal"
approve = "when-ready"
approver = "self"
listen = "127.0.0.1:8171"

[[handlers]]
name = "drain"
kind = "exec"
types = ["Reboot", "Redeploy", "Preempt", "Terminate"]
prepare = ["/etc/forewarn/drain"]
recover = ["/etc/forewarn/undrain"]
timeout = 300
on-failure = "hold"
"""


def read(text: str, **environment: str) -> Config:
    return parse(text, name="agent.toml", environment=environment)


def refusal(text: str, **environment: str) -> str:
    with pytest.raises(Invalid) as caught:
        read(text, **environment)
    return str(caught.value)


def test_the_config_of_the_reference_is_read() -> None:
    config = read(FULL)
    assert config.agent == AgentSettings(listen=("127.0.0.1", 8171))
    (drain,) = config.handlers
    assert (drain.name, drain.kind, drain.timeout) == ("drain", "exec", 300)
    assert (drain.on_failure, drain.on_restart, drain.drains) == (OnFailure.HOLD, OnRestart.WAIT, True)
    assert drain.when.types == (EventType.REBOOT, EventType.REDEPLOY, EventType.PREEMPT, EventType.TERMINATE)
    assert drain.does.describe(Side.RECOVER) == "runs /etc/forewarn/undrain"


@pytest.mark.parametrize("text", ["", "\n", "# forewarn agent\n"])
def test_an_empty_file_is_no_config(text: str) -> None:
    assert "is not a config: it has neither [agent] nor [[handlers]]" in refusal(text)


def test_an_empty_table_is_a_config() -> None:
    assert read("[agent]").agent == AgentSettings(
        approve=ApprovePolicy.WHEN_READY, approver=Approver.SELF, journal=Path("agent.journal")
    )


def test_the_endpoint_may_be_one_url_or_several() -> None:
    assert read('[agent]\nendpoint = "http://10.0.0.1/"').agent.endpoint == ("http://10.0.0.1",)
    several = read('[agent]\nendpoint = ["http://10.0.0.1:80", "https://b"]').agent.endpoint
    assert several == ("http://10.0.0.1:80", "https://b")


@pytest.mark.parametrize("wrong", ["http://h:99999", "http://h:0", "http://[::1", "ftp://h", "h:80"])
@pytest.mark.parametrize(
    "text",
    ['[agent]\nendpoint = "{url}"', '[[handlers]]\nname = "a"\nkind = "webhook"\nurl = "{url}"'],
)
def test_an_invalid_url_is_refused(text: str, wrong: str) -> None:
    assert "expected a URL that begins with http:// or https://" in refusal(text.replace("{url}", wrong))


def test_the_start_of_a_process_is_a_command() -> None:
    text = '[[handlers]]\nname = "a"\nkind = "process"\npid-file = "/run/a"\nstart = ["a\\u0000b"]\n'
    assert 'start: expected a list of texts, such as ["/etc/forewarn/drain", "--now"]' in refusal(text)


def test_filters_are_read() -> None:
    (one,) = read(
        '[[handlers]]\nname = "a"\nkind = "log"\nsources = ["User"]\nmin-duration = "10s"\n'
        'max-duration = 60\nmin-seconds-left = "1m"\nmax_seconds_left = "10m"\n'
    ).handlers
    when = one.when
    assert when.sources == (Source.USER,)
    assert (when.min_duration, when.max_duration) == (10, 60)
    assert (when.min_seconds_left, when.max_seconds_left) == (60, 600)
    assert not one.drains, "a line in a log drains nothing"


HANDLER = '\n[[handlers]]\nname = "a"\nkind = "log"\n\n[[handlers]]\nname = "b"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[agent\n",
            "agent.toml is not TOML: Expected ']' at the end of a table declaration (at line 1, column 7)",
        ),
        (
            '[agent]\n\napprove = "sometimes"',
            'line 3: agent.approve: expected never, when-ready or user-events, got "sometimes"',
        ),
        ('[agent]\naprove = "never"', "line 2: agent.aprove: there is no such field; did you mean approve?"),
        ("[agnt]\nx = 1", "line 1: agnt: there is no such field; did you mean agent?"),
        (
            '[agent]\nlisten = "8171"',
            'line 2: agent.listen: expected HOST:PORT, such as 127.0.0.1:8171, got "8171"',
        ),
        (
            "[agent]\nendpoint = 7",
            'line 2: agent.endpoint: expected "auto", a URL or a list of URLs, got 7',
        ),
        (
            HANDLER + 'kind = "log"\ntimeout = "soon"',
            'line 9: handlers[1] "b": timeout: expected a time from 1 s to 1 d,',
        ),
        (
            HANDLER + 'kind = "log"\ntimeot = 3',
            'line 9: handlers[1] "b": timeot: there is no such field; did you mean timeout?',
        ),
        (HANDLER + "timeout = 3", 'line 6: handlers[1] "b": kind: it is missing'),
        (
            HANDLER + 'kind = "exce"',
            'line 8: handlers[1] "b": kind: expected one of exec, webhook, haproxy, process, notify, log',
        ),
        (
            HANDLER + 'kind = "log"\ntypes = ["Reboot", "Restart"]',
            'line 9: handlers[1] "b": types: expected Freeze, Reboot, Redeploy, Preempt, Terminate or',
        ),
        (
            HANDLER + 'kind = "log"\non-failure = "retry"',
            'line 9: handlers[1] "b": on-failure: expected hold or continue, got "retry"',
        ),
        (
            HANDLER.replace('"b"', '"a"') + 'kind = "log"',
            "line 7: handlers[1] \"a\": name: another handler already has the name 'a'",
        ),
        (
            HANDLER + 'kind = "exec"',
            'line 6: handlers[1] "b": expected a command in prepare or recover, or a folder in hooks',
        ),
        (
            HANDLER + 'kind = "exec"\nprepare = "/etc/drain"',
            'line 9: handlers[1] "b": prepare: expected a list of texts, such as ["/etc/forewarn/drain", ',
        ),
        (
            HANDLER + 'kind = "webhook"\nurl = "http://a/${typ}"',
            'line 9: handlers[1] "b": url: ${typ} is unknown; expected one of id, type, ',
        ),
        (
            HANDLER + 'kind = "webhook"\nheaders = { A = "${env:TOKEN}" }\nurl = "http://a"',
            'line 9: handlers[1] "b": headers: ${env:TOKEN} is not set in the agent\'s environment',
        ),
        (HANDLER + 'kind = "notify"', 'handlers[1] "b": expected either to (mail addresses) or url'),
        (HANDLER + 'kind = "process"', 'handlers[1] "b": expected either unit or pid-file'),
        ("handlers = 3", "line 1: handlers: expected a list such as [[handlers]] before each handler, got 3"),
    ],
)
def test_a_bad_config_names_line_field_and_what_was_expected(text: str, said: str) -> None:
    assert said in refusal(text)


def test_a_key_inside_a_string_is_not_mistaken_for_a_key() -> None:
    text = '[agent]\njournal = """\nmachine = 1\n"""\nmachine = 7\n'
    assert line_of(text, ("agent", "machine")) == 5


def test_a_field_of_an_inline_table_has_the_line_of_its_table() -> None:
    assert line_of("[a]\nb = { c = 1 }\n[[x.y]]\n[[x.y]]\nz = 1", ("a", "b", "c")) == 2
    assert line_of("[[x]]\n[[x]]\n[[x.y]]\nz = 1", ("x", 1, "y", 0, "z")) == 4
    assert line_of("", ("a",)) is None
    assert line_of("[a]\n\n[[x]]\n[[x]]", ("x",)) == 3
    assert line_of("[a]\n\n[x.y]", ("x",)) == 3


def test_an_unknown_table_is_refused_with_its_line() -> None:
    assert refusal('[agent]\n\n[[handler]]\nname = "a"').startswith("agent.toml line 3: handler: ")
    assert "line 1: handlers: expected a list such as [[handlers]] before each handler" in refusal(
        "[handlers]\n"
    )


def test_the_error_of_a_missing_file_tells_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        Invalid, match=r"agent.toml cannot be read: No such file or directory\nGive the agent's config"
    ):
        load(tmp_path / "agent.toml")


def test_external_values_are_replaced_and_are_secrets(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://chat.example/hook/abc\n")
    text = (
        '[[handlers]]\nname = "a"\nkind = "webhook"\nurl = "https://a.example/x"\n'
        'headers = { Authorization = "Bearer ${env:TOKEN}" }\n'
        f'[[handlers]]\nname = "b"\nkind = "notify"\nurl = "${{file:{tmp_path / "url"}}}"\n'
    )
    config = read(text, TOKEN="do-not-show")
    assert {"do-not-show", "Bearer do-not-show", "https://chat.example/hook/abc"} <= config.secrets
    assert "do-not-show" not in " ".join(handler.does.describe(Side.PREPARE) for handler in config.handlers)


def test_an_error_does_not_show_a_secret() -> None:
    text = '[[handlers]]\nname = "a"\nkind = "webhook"\nurl = "ftp://user:hush@host/"\n'
    assert "hush" not in refusal(text)


LONG = "eyJ" + "x" * 300
LINES = "-----BEGIN-----\nabcdefgh\n-----END-----"


@pytest.mark.parametrize("secret", [LONG, LINES])
def test_a_secret_variable_may_be_long_and_have_several_lines(secret: str) -> None:
    text = (
        '[[handlers]]\nname = "a"\nkind = "exec"\nprepare = ["/bin/true", "${env:T}"]\n'
        'environment = {T = "${env:T}"}\n'
    )
    config = read(text, T=secret)
    assert {secret, *secret.splitlines()} <= config.secrets
    (told, *_) = explain(config)
    assert told.prepare[0].startswith("a: runs /bin/true *** (")


@pytest.mark.parametrize("secret", [LONG, LINES, "hush\0hush"])
@pytest.mark.parametrize(
    "field",
    ['environment = {"A=B" = "${env:T}"}', 'environment = {A = "${env:T}\\u0000"}', 'user = "x ${env:T}"'],
)
def test_an_error_does_not_show_an_external_value(secret: str, field: str) -> None:
    said = refusal(f'[[handlers]]\nname = "a"\nkind = "exec"\nprepare = ["/bin/true"]\n{field}\n', T=secret)
    assert said.startswith(f'agent.toml line 5: handlers[0] "a": {field.split()[0]}: ')
    assert not any(part in said for part in ("xxxx", "abcdefgh", "hush"))


def test_literals_in_secret_fields_are_secrets() -> None:
    text = (
        '[[handlers]]\nname = "a"\nkind = "webhook"\nurl = "https://a/1"\nrecover-url = "https://a/2"\n'
        '[[handlers]]\nname = "b"\nkind = "exec"\nprepare = ["/bin/true"]\nsecrets = {T = "literal"}\n'
    )
    assert {"https://a/1", "https://a/2", "literal"} <= read(text).secrets


def exec_with(line: str) -> str:
    return f'[[handlers]]\nname = "a"\nkind = "exec"\nprepare = ["/bin/true"]\n{line}\n'


def test_a_variable_is_a_secret_only_if_marked() -> None:
    line = 'environment = {NODE = "node-7", PORT = "${env:HOSTNAME}-x"}\nsecrets = {PASS = "hush-hush"}'
    config = read(exec_with(line), HOSTNAME="node-7")
    assert config.secrets == {"hush-hush"}
    (does,) = [each.does for each in config.handlers]
    assert isinstance(does, Exec)
    assert does.environment == {"NODE": "node-7", "PORT": "node-7-x", "PASS": "hush-hush"}


@pytest.mark.parametrize(
    ("name", "value", "hinted"),
    [
        ("PGPASSWORD", "hunter22", True),
        ("api_token", "hunter22", True),
        ("CLIENT_SECRET", "hunter22", True),
        ("AWS_SECRET_ACCESS_KEY", "hunter22", True),
        ("PGPASSWORD", "", False),
        ("PGPASSWORD", "${env:T}", False),
        ("KEY_FILE", "/etc/key", False),
        ("PASSWORD_FILE", "/etc/password", False),
        ("KEYBOARD", "de", False),
        ("NODE", "node-7", False),
    ],
)
def test_an_unmarked_variable_that_looks_like_a_secret_is_reported(
    name: str, value: str, hinted: bool
) -> None:
    remarks = read(exec_with(f'environment = {{{name} = "{value}"}}'), T="do-not-show").remarks
    assert [each.partition(" looks")[0] for each in remarks] == (
        [f'handlers[0] "a": environment: {name}'] if hinted else []
    )
    assert value not in " ".join(remarks) or not value


def test_failures_are_notified_unless_configured_otherwise() -> None:
    text = '[[handlers]]\nname = "a"\nkind = "notify"\nto = "root@localhost"\n'
    for more, told in (("", set(Side)), ('sides = ["held"]\nheld-text = "${failure}"\n', {Side.HELD})):
        (handler,) = read(text + more).handlers
        assert {side for side in Side if handler.does.describe(side)} == told
    webhook = '[[handlers]]\nname = "a"\nkind = "webhook"\nurl = "https://a.example"\n'
    assert "sides: expected prepare or recover" in refusal(f'{webhook}sides = ["held"]\n')


def test_a_variable_cannot_be_both_public_and_secret() -> None:
    said = refusal(exec_with('environment = {A = "shown"}\nsecrets = {A = "hush-hush"}'))
    assert "secrets: A is also in environment: remove one of them" in said
    assert "hush" not in said


@pytest.mark.parametrize("name", recipe.names())
def test_every_recipe_is_valid(name: str) -> None:
    config = read(recipe.text(name))
    assert config.handlers
    assert recipe.about(name).endswith(".")
    assert all(each.approve for each in explain(config))


def test_an_unknown_recipe_is_named() -> None:
    with pytest.raises(NotFound, match="recipe 'cake' does not exist; expected one of checkpoint, haproxy"):
        recipe.text("cake")


def test_each_hook_of_a_folder_is_a_handler(tmp_path: Path) -> None:
    for name, mode in (("20-app.sh", 0o755), ("10-drain", 0o755), ("30-off", 0o644), ("40-old.bak", 0o755)):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    (tmp_path / "50-folder").mkdir()
    config = read(f'[[handlers]]\nname = "hooks"\nkind = "exec"\nhooks = "{tmp_path}"\ntimeout = 9\n')
    assert [handler.name for handler in config.handlers] == ["hooks/10-drain", "hooks/20-app.sh"]
    assert [handler.timeout for handler in config.handlers] == [9, 9]
    assert config.handlers[0].does.describe(Side.RECOVER) == f"runs {tmp_path}/10-drain recover"
    assert config.remarks == (
        f"hooks: {tmp_path}/30-off is skipped: it is not executable: `chmod +x {tmp_path}/30-off`",
        f"hooks: {tmp_path}/40-old.bak is skipped: its name is that of a backup copy",
        f"hooks: {tmp_path}/50-folder is skipped: it is not a file",
    )


@pytest.mark.parametrize(
    "name",
    ["a~", "a.dpkg-old", "a.dpkg-dist", "a.rpmsave", "a.rpmnew", ".a", "#a#", "a.swp", "a.orig", "a b"],
)
def test_a_folder_without_programs_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / name).chmod(0o755)
    said = refusal(f'[[handlers]]\nname = "hooks"\nkind = "exec"\nhooks = "{tmp_path}"\n')
    assert f"hooks: there is no program in {tmp_path}: {tmp_path}/{name} is skipped:" in said


@pytest.mark.parametrize("name", ["duration", "seconds-left"])
def test_a_filter_that_matches_no_event_is_refused(name: str) -> None:
    told = f'[[handlers]]\nname = "h"\nkind = "log"\nmin-{name} = 60\nmax-{name} = 30\n'
    assert f"min-{name}: expected at most max-{name}, 30 s, got 60 s" in refusal(told)


def test_the_journals_path_is_relative_to_the_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    path = Path("here/agent.toml")
    path.write_text("[agent]\n")
    assert load(path).agent.journal == tmp_path / "here" / "agent.journal"
    assert load_settings(path).journal == tmp_path / "here" / "agent.journal"
    path.write_text('[agent]\njournal = "/var/lib/forewarn/agent.journal"\n')
    assert load(path).agent.journal == Path("/var/lib/forewarn/agent.journal")


def test_a_missing_pid_file_is_reported(tmp_path: Path) -> None:
    table = '[[handlers]]\nname = "app"\nkind = "process"\npid-file = "{}"\n'
    path = tmp_path / "app.pid"
    assert read(table.format(path)).remarks == (
        f"app: {path} does not exist: the program is not running, or the path is wrong",
    )
    path.touch()
    assert read(table.format(path)).remarks == ()
    (one,) = read(table.format(tmp_path / "no" / "app.pid")).handlers
    assert one.does.problems() == [f"pid-file: the folder {tmp_path}/no does not exist"]


def test_the_config_is_described() -> None:
    freeze, reboot, *_ = explain(read(FULL))
    assert (freeze.type, freeze.prepare, freeze.recover) == (EventType.FREEZE, (), ())
    assert freeze.approve == "at once, if it names this machine alone"
    assert reboot.prepare == (
        "drain: runs /etc/forewarn/drain (at most 300 s; a failure prevents the approval)",
    )
    assert reboot.approve == "once all of these are ready, if it names this machine alone"
    assert reboot.recover == ("drain: runs /etc/forewarn/undrain",)


HINTED = """
[agent]
api-version = "{version}"
[[handlers]]
name = "shift"
kind = "log"
types = ["SpotRebalanceRecommendation"]
"""


def test_recommendations_are_for_handlers_that_list_them_and_never_approved() -> None:
    *_, told = explain(read(HINTED.format(version="2024-07-09")))
    assert (told.type, told.approve) == (EventType.SPOT_REBALANCE_RECOMMENDATION, "never")
    assert [each.partition(":")[0] for each in told.prepare] == ["shift"]


def test_a_handler_for_an_event_that_the_agent_does_not_see_is_reported() -> None:
    config = read(HINTED.format(version="2020-07-01"))
    assert EventType.SPOT_REBALANCE_RECOMMENDATION not in {each.type for each in explain(config)}
    assert config.remarks == (
        'shift: the agent sees a SpotRebalanceRecommendation only with `api-version = "2024-07-09"`',
    )


def test_types_with_the_same_actions_are_grouped() -> None:
    nothing, drained = grouped(explain(read(FULL)))
    assert [each.type for each in nothing] == ["Freeze"]
    assert [each.type for each in drained] == ["Reboot", "Redeploy", "Preempt", "Terminate"]
    assert short_notice_warning(nothing) is None
    # Its timeout is 300 s.
    assert (
        short_notice_warning(drained)
        == "Preempt may come 30 s after its notice: it does not wait for handlers that take longer"
    )
