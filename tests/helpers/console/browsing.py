"""A real browser on the console: one for a whole run, with a separate visitor for each test.

Any error on a page fails the test: see `Visitor.troubles`. Loading the modules is most of the work of a page.
So visitors share a profile with its cache, one after another (see `Profiles`), and servers reuse addresses.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    WebError,
    expect,
    sync_playwright,
)
from playwright.sync_api import Error as PlaywrightError

from tests.helpers.programs.process import PATIENCE, Program, until

# Debian's headless Chromium, if it is installed: it needs half the CPU time.
CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
FLAGS = (
    "--disable-gpu",
    "--in-process-gpu",
    # All tabs of a profile share one process, which has compiled the console's modules.
    "--process-per-site",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Only this computer resolves: requests to other hosts fail, as they would without internet.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    # Render text the same on every computer.
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
)
MILLISECONDS = 1000

Theme = Literal["light", "dark"]
# Without a session, the first call is refused.
NOBODY_YET = r"^401 GET /v1/session$"
# Chromium's message for a failed response, which the tests also see as a response.
_FAILED_ANSWER = "Failed to load resource"
# The only call with an endless response.
_STREAM = "/v1/stream"
_TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Leaving or closing a page aborts its open requests.
_ENDED_BY_THE_PAGE = "net::ERR_ABORTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The screen of a visitor."""

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
    assert Path(CHROMIUM).exists(), "there is no Chromium: install Debian's chromium-headless-shell"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class Profiles:
    """Browser profiles, reused by one visitor after another.

    A visitor leaves only the cached files of the console to the next one.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[tuple[Screen, Theme], list[BrowserContext]] = {}

    def take(self, address: str, screen: Screen, theme: Theme) -> BrowserContext:
        """Return a profile for a visitor of a server."""
        free = self._free.setdefault((screen, theme), [])
        if free:
            return free.pop()
        context = self.made(screen, theme)
        # One open tab per server keeps the process alive for the next tabs.
        context.new_page().goto(f"{address}/healthz")
        return context

    def give_back(self, context: BrowserContext, address: str, screen: Screen, theme: Theme) -> None:
        """Clear a profile after a visit."""
        kept, *others = context.pages
        for page in others:
            page.close()
        context.set_offline(False)
        context.clear_cookies()
        tools = context.new_cdp_session(kept)
        tools.send("Storage.clearDataForOrigin", {"origin": address, "storageTypes": "all"})
        tools.detach()
        self._free[screen, theme].append(context)

    def made(self, screen: Screen, theme: Theme, **more: Any) -> BrowserContext:
        """Create a profile, with options of Playwright's contexts."""
        context = self._browser.new_context(
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
        context.set_default_timeout(PATIENCE * MILLISECONDS)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        return context


class Visitor:
    """A user with a fresh browser profile, which all tabs share."""

    def __init__(
        self,
        profiles: Profiles,
        program: Program,
        *,
        screen: Screen = WIDE,
        theme: Theme = "light",
        through: str | None = None,
        is_first: bool = False,
        **more: Any,
    ) -> None:
        """Set the visitor's profile, with options of Playwright's contexts such as `locale` or `timezone_id`.

        `through` is the address of a proxy in front of the server. With `is_first`, the profile is new and
        not reused.
        """
        self.program = program
        self._profiles = profiles
        self._through = through
        self.screen = screen
        self.theme = theme
        self.troubles: list[str] = []
        self._expected = [NOBODY_YET]
        self._unanswered: set[Request] = set()
        self._count = 0
        self._has_left = False
        self._is_alone = is_first or bool(more)
        self._context: BrowserContext = (
            profiles.made(screen, theme, **more)
            if self._is_alone
            else profiles.take(program.operators, screen, theme)
        )
        self._listeners: list[tuple[Any, Callable[..., None]]] = []
        self._listen("console", self._said)
        self._listen("weberror", self._threw)
        self._listen("request", self._asked)
        self._listen("requestfinished", self._finished)
        self._listen("requestfailed", self._failed)
        self._listen("response", self._answered)

    @property
    def address(self) -> str:
        """The address of the server. Its port changes after a restart."""
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
        """Wait until the view is loaded and drawn."""
        until(lambda: self._is_quiet(page), what="a page that asks nothing any more")

    def expects(self, *patterns: str) -> None:
        """Expect failures that match a pattern, such as `409 POST /v1/machines/`."""
        self._expected += patterns

    def watch(self, heard: Callable[[Request], None]) -> None:
        """Call a function with each request of the pages."""
        self._listen("request", heard)

    @property
    def cookies(self) -> Sequence[Mapping[str, Any]]:
        """The session cookies."""
        return self._context.cookies()

    def offline(self, *, is_offline: bool) -> None:
        """Disconnect or connect the network."""
        self._context.set_offline(is_offline)

    def leave(self) -> None:
        """Close all tabs, and fail if an error occurred on them. Later calls do nothing."""
        if self._has_left:
            return
        self._has_left = True
        try:
            for page in self._context.pages:
                page.evaluate("0")  # earlier events are reported before this answer
        except PlaywrightError:
            self._is_alone = True  # do not reuse a broken profile
            raise
        finally:
            self._go()
        troubles, self.troubles = self.troubles, []
        assert not troubles, "\n".join(["on the page:", *troubles])

    def _go(self) -> None:
        for event, listener in self._listeners:
            self._context.remove_listener(event, listener)
        self._listeners.clear()
        if self._is_alone:
            self._context.close()
        else:
            self._profiles.give_back(self._context, self.address, self.screen, self.theme)

    def _listen(self, event: Any, listener: Callable[..., None]) -> None:
        self._context.on(event, listener)
        self._listeners.append((event, listener))

    def _is_quiet(self, page: Page) -> bool:
        count = self._count
        page.evaluate(_TWO_FRAMES)
        return not self._unanswered and self._count == count

    def _trouble(self, text: str) -> None:
        if not any(re.search(pattern, text) for pattern in self._expected):
            self.troubles.append(text)

    def _threw(self, error: WebError) -> None:
        self._trouble(f"uncaught: {error.error}")

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
