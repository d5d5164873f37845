"""Actions of the tests in the console: open an address, press a button, fill in a dialog."""

import re
from collections.abc import Mapping

from playwright.sync_api import Locator, Page, expect


def go(page: Page, address: str) -> None:
    """Show another view without a reload, as the back button does."""
    page.evaluate(
        "address => { history.pushState(null, '', address); dispatchEvent(new PopStateEvent('popstate')) }",
        f"/console{address}",
    )
    expect(page).to_have_url(re.compile(re.escape(address)))


def press(where: Page | Locator, label: str, *, in_menu: bool = False) -> Locator:
    """Press the button of an action and return its dialog."""
    page = where if isinstance(where, Page) else where.page
    part = page.get_by_role("main") if where is page else where
    if in_menu:
        part.locator(".menu-button").click()
        part.get_by_role("menuitem", name=re.compile(f"^{re.escape(label)} …")).click()
    else:
        part.get_by_role("button", name=f"{label} …", exact=True).click()
    return page.get_by_role("dialog")


def fill(dialog: Locator, fields: Mapping[str, str | bool]) -> None:
    """Fill in fields by label. Unfold "More" for a hidden field."""
    expect(dialog).not_to_have_attribute("aria-busy", "true")
    folded = dialog.locator("details.more-fields:not([open]) > summary")
    for label, value in fields.items():
        field = dialog.get_by_label(re.compile(f"^{re.escape(label)}( \\(required\\))?$"))
        if not field.is_visible() and folded.count():
            folded.click()
        if isinstance(value, bool):
            field.set_checked(value)
        elif field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


def answer(dialog: Locator, button: str) -> None:
    """Press a button of the dialog and wait until the dialog closes."""
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_be_hidden()


def expect_command(dialog: Locator, words: str) -> None:
    """Expect the equivalent command."""
    expect(dialog.locator(".as-command code")).to_have_text(f"forewarn {words}")
