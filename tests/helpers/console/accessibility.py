"""Check a page with axe, the accessibility checker."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from playwright.sync_api import Page

from tests import ROOT

AXE = ROOT / "node_modules/axe-core/axe.min.js"
SERIOUS = ("serious", "critical")
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


@cache
def _source() -> str:
    return AXE.read_text(encoding="utf-8")


def check(page: Page, *, grave: Sequence[str] = SERIOUS) -> None:
    """Fail if axe finds a serious problem."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())  # like a debugger, so the Content-Security-Policy does not apply
    found: list[dict[str, Any]] = page.evaluate(
        "tags => axe.run({runOnly: tags, resultTypes: ['violations']}).then(found => found.violations)",
        list(RULES),
    )
    wrong = [violation for violation in found if violation["impact"] in grave]
    assert not wrong, "\n".join(_lines(page, wrong))


def _lines(page: Page, violations: Sequence[dict[str, Any]]) -> list[str]:
    size = page.viewport_size
    return [f"axe on {page.url}, {size['width'] if size else '?'} wide:", *map(_line, violations)]


def _line(violation: dict[str, Any]) -> str:
    """Describe a problem with its first element; the others are usually of the same kind."""
    first, places = violation["nodes"][0], len(violation["nodes"])
    where = f"{first['target']} and {places - 1} more: {first['html'][:300]}"
    return f"{violation['impact']}: {violation['help']} ({violation['id']}) at {where}"
