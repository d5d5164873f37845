"""Tokens and TLS on the command line, against real programs."""

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.helpers.programs.process import PATIENCE, Program, run, sample_fleet

STORE = "sqlite:///forewarn.db"
OPERATOR = ("token", "create", "--role", "operator", "--name", "olga")


def made(folder: Path, *words: str, **environment: str) -> str:
    """Create a token, and return its secret, which is the whole output."""
    done = run(folder, "token", "create", *words, environment=environment)
    assert done.returncode == 0, done.stderr
    (secret,) = done.stdout.splitlines()
    assert secret.startswith("fw_")
    assert secret not in done.stderr
    return secret


def operator_of(folder: Path) -> str:
    return made(folder, *OPERATOR[2:], "--database", STORE)


def test_the_first_token_is_created_in_the_store_before_the_server_starts(tmp_path: Path) -> None:
    secret = operator_of(tmp_path)
    assert len(secret) > 40
    listed = run(tmp_path, "token", "list", "--database", STORE).stdout
    assert "olga" in listed
    assert "in force" in listed
    assert secret not in (tmp_path / "forewarn.db").read_bytes().decode(errors="replace")


def test_a_new_store_for_a_token_is_reported(tmp_path: Path) -> None:
    first = run(tmp_path, *OPERATOR, "--database", STORE)
    assert f"There was no store at {tmp_path / 'forewarn.db'}: this command has created one" in first.stderr
    second = run(tmp_path, "token", "create", "--role", "viewer", "--name", "vera", "--database", STORE)
    assert second.returncode == 0
    assert "no store" not in second.stderr


@pytest.mark.parametrize(
    "words", [("list",), ("revoke", "olga"), ("create", "--role", "viewer", "--name", "vera")]
)
def test_a_mistyped_store_is_refused_and_not_created(tmp_path: Path, words: tuple[str, ...]) -> None:
    refused = run(tmp_path, "token", *words, "--database", "sqlite:///forwarn.db")
    assert refused.returncode == 1
    assert f"there is no store at {tmp_path / 'forwarn.db'}: check --database" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_project_needs_confirmation(tmp_path: Path) -> None:
    made(tmp_path, *OPERATOR[2:], "--database", STORE)
    user = ("--role", "user", "--name", "anna", "--database", STORE)
    refused = run(tmp_path, "token", "create", *user, "--project", "defualt")
    assert refused.returncode == 2
    assert '--project: expected one of the projects, got "defualt"; did you mean default?' in refused.stderr
    unknown = run(tmp_path, "token", "create", *user, "--project", "shop")
    assert 'got "shop": declare it in the fleet first' in unknown.stderr


def test_a_first_token_must_be_an_operators(tmp_path: Path) -> None:
    with Program(tmp_path):
        pass  # the store exists from here
    refused = run(tmp_path, "token", "create", "--role", "viewer", "--name", "vera", "--database", STORE)
    assert refused.returncode == 1
    assert "the first token must be an operator's" in refused.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--role", "root", "--name", "x"), 2, "--role: expected viewer, user or operator"),
        (("--role", "operator", "--name", "a b"), 2, "--name: expected a name of"),
        (("--role", "operator", "--name", "x", "--expires", "soon"), 2, "expected a time such as"),
        (("--role", "operator", "--name", "x", "--expires", "0"), 2, "expected a time greater than zero"),
        (("--role", "operator", "--name", "x", "--project", "default"), 2, "omit the project"),
        (("--name", "x"), 2, "--role"),
    ],
)
def test_invalid_options_are_refused_with_a_store_too(
    tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    refused = run(tmp_path, "token", "create", *words, "--database", STORE)
    assert refused.returncode == code
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_token_created_beside_a_running_server_is_valid_at_once(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        assert program.call("GET", "/v1/machines").status_code == 200
        environment = {"FOREWARN_SERVER": program.operators, "FOREWARN_CLOCK": "manual"}
        secret = made(tmp_path, *OPERATOR[2:], "--database", STORE, **environment)
        bearer = {"Authorization": f"Bearer {secret}"}
        assert program.call("GET", "/v1/machines", headers=bearer).status_code == 200
        refused = run(tmp_path, "machine", "list", environment=environment)
        assert refused.returncode == 1
        assert "FOREWARN_TOKEN" in refused.stderr
        good = environment | {"FOREWARN_TOKEN": secret}
        assert run(tmp_path, "machine", "list", environment=good).returncode == 0
        assert run(tmp_path, "machine", "list", "--token", secret, environment=environment).returncode == 0
        user = made(tmp_path, "--role", "user", "--project", "default", "--name", "anna", **good)
        mine = environment | {"FOREWARN_TOKEN": user}
        assert run(tmp_path, "machine", "restart", "web-0", environment=mine).returncode == 0
        forbidden = run(tmp_path, "host", "list", environment=mine)
        assert forbidden.returncode == 1
        assert forbidden.stderr.startswith("forewarn: anna (user of default) sees only project default")
        assert "revoked" in run(tmp_path, "token", "revoke", "anna", environment=good).stdout
        assert "not known" in run(tmp_path, "machine", "list", environment=mine).stderr
        said = run(tmp_path, "history", environment=good).stdout
        assert "token-revoked" in said
        assert "(on the store)" in said
        for secret_ in (secret, user):
            assert secret_ not in program.out.text + program.err.text


@pytest.mark.parametrize("token", ["fw_ä", "fw_a b", "fw_a\nb"])
def test_an_unsendable_token_is_refused_without_being_printed(tmp_path: Path, token: str) -> None:
    refused = run(tmp_path, "clock", "show", environment={"FOREWARN_TOKEN": token})
    assert refused.returncode == 1
    assert refused.stderr == ("forewarn: the token has invalid characters: check FOREWARN_TOKEN or --token\n")


# Addresses other than loopback


def test_a_public_address_without_a_token_is_refused_with_the_next_step(tmp_path: Path) -> None:
    refused = run(tmp_path, "serve", "--guest", "127.0.0.1:0", "--operator", "0.0.0.0:0")
    assert refused.returncode == 2
    assert "forewarn token create --role operator" in refused.stderr
    assert not (tmp_path / "forewarn.db").exists()


def test_a_public_address_with_a_token_is_served_with_a_warning(tmp_path: Path) -> None:
    secret = operator_of(tmp_path)
    with Program(tmp_path, operator="0.0.0.0:0") as program:
        assert "without encryption" in program.out.wait_for("Warning: ")
        url = program.operators.replace("0.0.0.0", "127.0.0.1")
        answers = [
            httpx.get(f"{url}/v1/clock", headers=headers, trust_env=False).status_code
            for headers in ({}, {"Authorization": f"Bearer {secret}"})
        ]
        assert answers == [401, 200]


# TLS


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, str]:
    """Create a certificate for 127.0.0.1, and return the settings that use it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    names = ("-subj", "/CN=forewarn", "-addext", "subjectAltName=IP:127.0.0.1")
    made = ("-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2")
    subprocess.run(["openssl", "req", "-x509", *made, *names], cwd=tmp_path, check=True, capture_output=True)
    return {"FOREWARN_OPERATOR_CERTIFICATE": "cert.pem", "FOREWARN_OPERATOR_KEY": "key.pem"}


def test_with_a_certificate_the_operator_api_uses_tls(tmp_path: Path, certificate: dict[str, str]) -> None:
    secret = operator_of(tmp_path)
    with Program(tmp_path, environment=certificate, operator="0.0.0.0:0") as program:
        assert program.operators.startswith("https://")
        assert "Warning" not in program.out.text
        url = program.operators.replace("0.0.0.0", "127.0.0.1")
        environment = {"FOREWARN_SERVER": url, "FOREWARN_TOKEN": secret}
        distrusted = run(tmp_path, "clock", "show", environment=environment)
        assert distrusted.returncode == 3
        assert f"The certificate of {url} is not trusted" in distrusted.stderr
        assert "Set FOREWARN_CA to a file" in distrusted.stderr
        assert "No server answers" not in distrusted.stderr
        trusted = run(tmp_path, "clock", "show", environment=environment | {"FOREWARN_CA": "cert.pem"})
        assert trusted.returncode == 0, trusted.stderr
        plain = httpx.get(url.replace("https:", "http:"), trust_env=False, timeout=PATIENCE)
        assert (plain.status_code, "requires TLS" in plain.text) == (400, True)


def test_an_unusable_certificate_is_named(tmp_path: Path, certificate: dict[str, str]) -> None:
    for wrong, message in (
        ({"FOREWARN_OPERATOR_KEY": "cert.pem"}, "certificate cert.pem and key cert.pem cannot be used"),
        ({"FOREWARN_OPERATOR_KEY": "none.pem"}, "No such file"),
    ):
        refused = run(tmp_path, "serve", environment=certificate | wrong)
        assert refused.returncode == 2
        assert message in refused.stderr
    alone = {"FOREWARN_OPERATOR_CERTIFICATE": "cert.pem"}
    assert "expected both or neither" in run(tmp_path, "serve", environment=alone).stderr
    assert not (tmp_path / "forewarn.db").exists()
