"""The page is there, starts, and asks nothing of anybody but its server."""

import pytest
from playwright.sync_api import expect

from tests.console_fixtures import MORNING, Serve, Visit, let_in
from tests.process import Program


def test_the_page_opens_at_once_where_there_are_no_tokens(calm: Program, visit: Visit) -> None:
    page = visit(calm).open("/")
    expect(page).to_have_url(f"{calm.operators}/console/")
    expect(page.get_by_role("main")).to_be_visible()


def test_a_token_lets_a_person_in(server: Program, visit: Visit) -> None:
    secret = let_in(server, "olga", "operator")
    visitor = visit(server)
    page = visitor.sign_in(secret, "/console/hosts")
    expect(page).to_have_url(f"{server.operators}/console/hosts")
    expect(page.get_by_role("link", name="Hosts")).to_have_attribute("aria-current", "page")
    (cookie,) = visitor.cookies
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


def test_an_empty_server_shows_a_page_too(serve: Serve, visit: Visit) -> None:
    page = visit(serve(fleet=None)).open()
    expect(page.get_by_role("main")).to_be_visible()


def test_the_service_begins_on_the_same_morning_each_time(calm: Program) -> None:
    assert calm.get("/v1/clock")["now"] == f"{MORNING:%Y-%m-%dT%H:%M:%S}Z"


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("window.open('http://elsewhere.example/')", "asked elsewhere: GET http://elsewhere.example/"),
        ("fetch('http://elsewhere.example/')", "connect-src"),
        ("fetch('/v1/machines/nobody')", "404 GET /v1/machines/nobody"),
        ("console.error('on fire')", "console error: on fire"),
        ("setTimeout(() => { throw new Error('on fire') })", "uncaught: .*on fire"),
        ("document.body.setAttribute('style', 'color: red')", "style-src"),
        (
            "document.body.append(Object.assign(document.createElement('script'), {text: '1'}))",
            "TrustedScript",
        ),
        ("document.body.innerHTML = '<p>'", "TrustedHTML"),
    ],
)
def test_a_page_on_which_something_goes_wrong_fails_its_test(
    calm: Program, visit: Visit, script: str, trouble: str
) -> None:
    visitor = visit(calm)
    page = visitor.open()
    page.evaluate(
        f"async () => {{ try {{ await ({script}) }} catch (error) {{ console.error(error.message) }} }}"
    )
    page.evaluate("new Promise(resolve => setTimeout(resolve))")
    with pytest.raises(AssertionError, match=trouble):
        visitor.leave()
