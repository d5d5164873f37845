"""The page loads, and makes requests only to its server."""

import re
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.console.browsing import Visitor
from tests.helpers.console.console_fixtures import MORNING, Visit
from tests.helpers.programs.process import Program, until


def test_the_page_opens_without_a_sign_in_if_there_are_no_tokens(calm: Program, visit: Visit) -> None:
    page = visit(calm).open("/")
    expect(page).to_have_url(f"{calm.operators}/console/")
    expect(page.get_by_role("main")).to_be_visible()


def test_every_test_server_starts_at_the_same_time(calm: Program) -> None:
    assert calm.get("/v1/clock")["now"] == f"{MORNING:%Y-%m-%dT%H:%M:%S}Z"


TROUBLES = {
    "window.open('http://elsewhere.example/')": "asked elsewhere: GET http://elsewhere.example/",
    "fetch('http://elsewhere.example/')": "connect-src",
    "fetch('/v1/machines/missing')": "404 GET /v1/machines/missing",
    "console.error('on fire')": "console error: on fire",
    "setTimeout(() => { throw new Error('on fire') })": "uncaught: .*on fire",
    "document.body.setAttribute('style', 'color: red')": "style-src",
    "document.body.append(Object.assign(document.createElement('script'), {text: '1'}))": "TrustedScript",
    "document.body.innerHTML = '<p>'": "TrustedHTML",
}


def test_an_error_on_a_page_fails_its_test(calm: Program, visit: Visit) -> None:
    visitor = visit(calm)
    page = visitor.open()
    for script, trouble in TROUBLES.items():
        page.evaluate(
            f"async () => {{ try {{ await ({script}) }} catch (error) {{ console.error(error.message) }} }}"
        )
        until(partial(_has_met, visitor, page, trouble), what=trouble)
    with pytest.raises(AssertionError, match="TrustedHTML"):
        visitor.leave()


def _has_met(visitor: Visitor, page: Page, trouble: str) -> bool:
    page.evaluate("0")  # earlier errors are reported before this answer
    return any(re.search(trouble, each) for each in visitor.troubles)
