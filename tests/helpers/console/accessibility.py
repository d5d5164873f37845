"""What axe, the accessibility checker, finds wrong with a page."""

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
    """Fail if axe finds something grave."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())  # as a debugger would, which the page's policy does not bind
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
    """Write what is wrong, with the first element of which it is; the others are mostly of its kind."""
    first, places = violation["nodes"][0], len(violation["nodes"])
    where = f"{first['target']} and {places - 1} more: {first['html'][:300]}"
    return f"{violation['impact']}: {violation['help']} ({violation['id']}) at {where}"
