"""A real browser on the console: one for a whole run, with a visitor of its own for each test.

Whatever goes wrong on a page, seen or not, fails the test: see `Visitor.troubles`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from tests.process import PATIENCE, Program, until

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Nothing but this computer can be found: a page that asks elsewhere fails, as it would without internet.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    # Text looks the same wherever a picture is made.
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
)
MILLISECONDS = 1000

Theme = Literal["light", "dark"]
# Where nobody is signed in, the page learns that by asking.
NOBODY_YET = r"^401 GET /v1/session$"
# How Chromium reports a failed answer, which is reported on its own too.
_FAILED_ANSWER = "Failed to load resource"
# The one call whose answer has no end.
_STREAM = "/v1/stream"
_TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# A page that is left or closed ends what it is still asking.
_ENDED_BY_THE_PAGE = "net::ERR_ABORTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What a page is looked at on."""

    name: str
    width: int
    height: int
    is_phone: bool = False


WIDE = Screen(name="wide", width=1440, height=900)
PHONE = Screen(name="phone", width=390, height=844, is_phone=True)
SCREENS = (WIDE, PHONE)
THEMES: tuple[Theme, ...] = ("light", "dark")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser.

    Playwright lets its event loop run between the calls of this thread: as long as the browser is there,
    `asyncio.run` is not possible here.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class Visitor:
    """A person at a browser that knows nothing yet; may have several tabs, which share what they keep."""

    def __init__(
        self,
        browser: Browser,
        program: Program,
        *,
        screen: Screen = WIDE,
        theme: Theme = "light",
        through: str | None = None,
        **more: Any,
    ) -> None:
        """Take options of Playwright's contexts besides: `locale`, `timezone_id`, `reduced_motion`, …

        Who comes `through` a proxy finds the server at its address.
        """
        self.program = program
        self._through = through
        self.screen = screen
        self.theme = theme
        self.troubles: list[str] = []
        self._expected = [NOBODY_YET]
        self._unanswered: set[Request] = set()
        self._count = 0
        self._context: BrowserContext = browser.new_context(
            **{
                "viewport": {"width": screen.width, "height": screen.height},
                "is_mobile": screen.is_phone,
                "has_touch": screen.is_phone,
                "color_scheme": theme,
                "reduced_motion": "reduce",
                "locale": "en-GB",
                "timezone_id": "UTC",
                **more,
            }
        )
        self._context.set_default_timeout(PATIENCE * MILLISECONDS)
        self._context.grant_permissions(["clipboard-read", "clipboard-write"])
        self._context.on("console", self._said)
        self._context.on("weberror", lambda error: self._trouble(f"uncaught: {error.error}"))
        self._context.on("request", self._asked)
        self._context.on("requestfinished", self._finished)
        self._context.on("requestfailed", self._failed)
        self._context.on("response", self._answered)

    @property
    def address(self) -> str:
        """Where the visitor finds the server, which has another port after a restart."""
        return self._through or self.program.operators

    def open(self, path: str = "/console/") -> Page:
        """Open a tab at an address of the console."""
        page = self._context.new_page()
        page.goto(f"{self.address}{path}")
        return page

    def sign_in(self, secret: str, path: str = "/console/") -> Page:
        """Open a tab, and sign in with a token."""
        page = self.open(path)
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("navigation", name="Views")).to_be_visible()
        return page

    def settle(self, page: Page) -> None:
        """Wait until the page has read what it shows, and has drawn it."""
        until(lambda: self._is_quiet(page), what="a page that asks nothing any more")

    def expects(self, *patterns: str) -> None:
        """Take troubles that match a pattern for what the test is about, such as `409 POST /v1/machines/`."""
        self._expected += patterns

    def watch(self, heard: Callable[[Request], None]) -> None:
        """Call a function with whatever the pages ask for."""
        self._context.on("request", heard)

    @property
    def cookies(self) -> Sequence[Mapping[str, Any]]:
        """What the browser keeps of sessions."""
        return self._context.cookies()

    def offline(self, *, is_offline: bool) -> None:
        """Take the network away, or give it back."""
        self._context.set_offline(is_offline)

    def leave(self) -> None:
        """Close all tabs, and fail if anything went wrong on them."""
        for page in self._context.pages:
            page.evaluate("0")  # what happened before it is reported before its answer
        self._context.close()
        troubles, self.troubles = self.troubles, []
        assert not troubles, "\n".join(["on the page:", *troubles])

    def _is_quiet(self, page: Page) -> bool:
        count = self._count
        page.evaluate(_TWO_FRAMES)
        return not self._unanswered and self._count == count

    def _trouble(self, text: str) -> None:
        if not any(re.search(pattern, text) for pattern in self._expected):
            self.troubles.append(text)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert") and not message.text.startswith(_FAILED_ANSWER):
            self._trouble(f"console {message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        self._count += 1
        if _path(request.url) != _STREAM:
            self._unanswered.add(request)
        if not request.url.startswith((f"{self.address}/", "blob:", "data:")):
            self._trouble(f"asked elsewhere: {request.method} {request.url}")

    def _finished(self, request: Request) -> None:
        self._unanswered.discard(request)

    def _failed(self, request: Request) -> None:
        self._unanswered.discard(request)
        if request.failure != _ENDED_BY_THE_PAGE:
            self._trouble(f"{request.failure} {request.method} {_path(request.url)}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self._trouble(f"{response.status} {response.request.method} {_path(response.url)}")


def wait_until(page: Page, condition: str) -> None:
    """Wait until a condition in JavaScript holds.

    Playwright's own `wait_for_function` needs `eval` if it looks twice, and the page's policy forbids that.
    """
    until(lambda: page.evaluate(condition), what=condition)


def _path(url: str) -> str:
    return urlsplit(url).path
