"""Settings: their sources, the order of precedence, and error messages."""

from datetime import timedelta
from typing import Any

import pytest

from forewarn.config import Settings
from forewarn.config_reading import load, unknown_names
from forewarn.core.errors import Invalid

# Precedence

SOURCES: dict[str, dict[str, Any]] = {
    "file": {"file": 'database = "file"\n[guest]\nlisten = ["file:1"]\n[operator]\nlisten = "file:1"'},
    "environment": {
        "environment": {
            "FOREWARN_DATABASE": "environment",
            "FOREWARN_GUEST_LISTEN": "environment:1",
            "FOREWARN_OPERATOR_LISTEN": "environment:1",
        }
    },
    "flag": {"flags": {"database": "flag", "guest.listen": ["flag:1"], "operator.listen": "flag:1"}},
}


def loaded(
    file: str | None = None,
    environment: dict[str, str] | None = None,
    flags: dict[str, Any] | None = None,
) -> Settings:
    return load(file, environment or {}, flags or {})


@pytest.mark.parametrize(
    ("given", "wins"),
    [
        (["file"], "file"),
        (["environment"], "environment"),
        (["flag"], "flag"),
        (["file", "environment"], "environment"),
        (["file", "flag"], "flag"),
        (["environment", "flag"], "flag"),
        (["file", "environment", "flag"], "flag"),
    ],
)
def test_a_flag_overrides_the_environment_which_overrides_the_file(given: list[str], wins: str) -> None:
    settings = loaded(**{key: value for source in given for key, value in SOURCES[source].items()})
    assert settings.database == wins
    assert settings.guest.listen == (f"{wins}:1",)
    assert settings.operator.listen == (f"{wins}:1",)


def test_an_unset_setting_has_its_default() -> None:
    settings = loaded()
    assert settings == Settings()
    assert settings.database == "sqlite:///forewarn.db"
    assert settings.guest.listen == ("127.0.0.1:8169",)
    assert settings.guest.rate == 5
    assert settings.operator.listen == ("127.0.0.1:8170",)
    assert settings.clock == "system"
    assert settings.times.freeze_notice == timedelta(minutes=15)


def test_a_source_changes_only_the_settings_that_it_names() -> None:
    settings = loaded(
        file="[guest]\nrate = 7\ninstance = 'name'\n[times]\nlinger = 60",
        environment={"FOREWARN_GUEST_INSTANCE": "off", "FOREWARN_TIMES_USER_ORDERS": "3"},
        flags={"clock": "manual", "database": None},
    )
    assert (settings.guest.rate, settings.guest.instance) == (7, "off")
    assert (settings.times.linger, settings.times.user_orders) == (timedelta(minutes=1), 3)
    assert (settings.clock, settings.database) == ("manual", "sqlite:///forewarn.db")


def test_keys_of_the_file_may_have_hyphens_or_underscores() -> None:
    for key in ("lenient-header-on-post", "lenient_header_on_post"):
        assert loaded(file=f"[guest]\n{key} = true").guest.lenient_header_on_post


def test_variables_of_other_programs_are_not_settings() -> None:
    assert loaded(environment={"FOREWARN_SERVER": "x", "RATE": "1", "FOREWARN_GUEST": "y"}) == Settings()


@pytest.mark.parametrize("text", ["a:1,b:2", "a:1, b:2"])
def test_a_list_in_the_environment_is_separated_by_commas(text: str) -> None:
    assert loaded(environment={"FOREWARN_GUEST_LISTEN": text}).guest.listen == ("a:1", "b:2")


@pytest.mark.parametrize("face", ["guest", "operator"])
@pytest.mark.parametrize(("written", "read"), [('"a:1"', ("a:1",)), ('["a:1", "b:2"]', ("a:1", "b:2"))])
def test_an_address_may_be_a_string_or_a_list(face: str, written: str, read: tuple[str, ...]) -> None:
    assert getattr(loaded(file=f"[{face}]\nlisten = {written}"), face).listen == read


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("True", True), ("1", True), ("false", False), ("0", False)]
)
def test_a_boolean_in_the_environment_is_a_word_or_a_digit(text: str, value: bool) -> None:
    settings = loaded(environment={"FOREWARN_GUEST_LENIENT_HEADER_ON_POST": text})
    assert settings.guest.lenient_header_on_post is value


# Times


@pytest.mark.parametrize(("text", "keep"), [("400d", timedelta(days=400)), ("forever", None)])
def test_the_history_is_kept_for_a_time_or_forever(text: str, keep: timedelta | None) -> None:
    assert Settings().history.keep is None
    assert loaded(file=f"[history]\nkeep = '{text}'").history.keep == keep
    assert loaded(environment={"FOREWARN_HISTORY_KEEP": text}).history.keep == keep


# Errors


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("[guest]\nrat = 5", "guest.rat: there is no such setting; did you mean rate?"),
        ("[gest]\nrate = 5", "gest: there is no such setting; did you mean guest?"),
        ("[times]\nlingers = 5", "times.lingers: there is no such setting; did you mean linger?"),
        (
            "[times]\nreboot-notise = 5",
            "times.reboot-notise: there is no such setting; did you mean reboot-notice?",
        ),
        ("colour = 'red'", "colour: there is no such setting"),
        ("guest = 5", "guest: expected a table"),
        ("[database]\nurl = 'x'", "database: expected a text, got {'url': 'x'}"),
        ("[guest]\nrate = 'many'", "guest.rate: expected a number, got 'many'"),
        ("[guest]\nrate = true", "guest.rate: expected a number, got True"),
        ("[guest]\nrate = -1", "guest.rate: expected a number that is not negative, got -1"),
        ("[guest]\nrate = inf", "guest.rate: expected a number that is not negative, got inf"),
        ("[guest]\nlisten = 8169", "guest.listen: expected a list of texts, got 8169"),
        ("[operator]\nlisten = 8170", "operator.listen: expected a list of texts, got 8170"),
        (
            '[hooks]\nwork = "/bin/drain\\u0000"',
            "hooks.work: expected a text without NUL, got '/bin/drain\\x00'",
        ),
        ("[operator]\nlisten = []", "operator.listen: expected at least one address, got []"),
        ("[guest]\nlisten = [8169]", "guest.listen: expected a text, got [8169]"),
        ("[guest]\ninstance = 'half'", "guest.instance: expected full, name or off, got 'half'"),
        (
            "[guest]\nlenient-header-on-post = 2",
            "guest.lenient-header-on-post: expected true or false, got 2",
        ),
        ("[guest]\nconnections-per-address = 0", "guest.connections-per-address: expected at least 1, got 0"),
        ("[operator]\nconnections = 0", "operator.connections: expected at least 1, got 0"),
        ("[operator]\nsession = '59s'", "operator.session: expected from 1 m to 400 d, got '59s'"),
        ("[operator]\nsession = '401d'", "operator.session: expected from 1 m to 400 d, got '401d'"),
        ("[times]\nuser-orders = 2.5", "times.user-orders: expected a whole number, got 2.5"),
        ("[times]\nuser-orders = inf", "times.user-orders: expected a number, got inf"),
        ("[times]\nlinger = -1", "times.linger: expected a time that is not negative, got -1"),
        ("[times]\nlinger = inf", "times.linger: expected a shorter time, got inf"),
        ("[history]\nkeep = '5h'", "history.keep: expected at least 1d, or forever, got '5h'"),
        ("[simulated]\nfail = ''", "simulated.fail: expected a time such as 90, 15m, 1h30m or 7d, got ''"),
    ],
)
def test_an_error_in_the_file_names_the_key(file: str, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        loaded(file=file)
    assert str(refused.value) == message


def test_a_file_that_is_not_toml_is_refused_with_the_position() -> None:
    with pytest.raises(Invalid, match=r"the settings file is not TOML: .*line 1"):
        loaded(file="[guest\nrate = 5")


def test_an_error_in_the_environment_names_the_variable() -> None:
    with pytest.raises(Invalid) as refused:
        loaded(environment={"FOREWARN_TIMES_LINGER": "long"})
    assert str(refused.value) == (
        "FOREWARN_TIMES_LINGER: expected a time such as 90, 15m, 1h30m or 7d, got 'long'"
    )


def test_an_error_in_a_flag_names_the_flag() -> None:
    with pytest.raises(Invalid) as refused:
        loaded(flags={"guest.listen": [8169]})
    assert str(refused.value) == "--guest: expected a text, got [8169]"


# Warnings


def test_an_unknown_variable_causes_a_warning_with_a_suggestion() -> None:
    given = {
        "FOREWARN_GUEST_RAT": "1",
        "FOREWARN_COLOUR": "red",
        "FOREWARN_GUEST_RATE": "1",
        "FOREWARN_SERVER": "x",
        "FOREWARN_HISTORY_KEEP": "7d",
        "RATE": "1",
    }
    assert unknown_names(given) == [
        "FOREWARN_COLOUR is not a setting and is ignored",
        "FOREWARN_GUEST_RAT is not a setting and is ignored; did you mean FOREWARN_GUEST_RATE?",
    ]
