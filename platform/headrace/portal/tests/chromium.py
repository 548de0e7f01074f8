"""The system's Chromium, driven as a person would: what it says on its console, or refuses by policy, is kept."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright

PROGRAM = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text()
# Nothing it does by itself may leave this machine.
_QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def start(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=PROGRAM, args=_QUIET)


@contextmanager
def tab(
    browser: Browser, url: str, *, width: int = 1440, scheme: Any = "light", expects: Sequence[str] = ()
) -> Iterator[Page]:
    """A page of a fresh context; raises AssertionError at the end if anything was said on its console but what a test
    `expects`, by a part of its words."""
    context = browser.new_context(base_url=url, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        yield page
        unexpected = [text for text in said if not any(words in text for words in expects)]
        assert not unexpected, unexpected
    finally:
        context.close()


def sign_in(page: Page, address: str, password: str) -> None:
    page.goto("/account/login/")
    page.get_by_label("Login").fill(address)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/t/**")


def too_wide(page: Page) -> list[str]:
    """What must be scrolled sideways to be read, of what shall not: the page, and tables whose rows are cards."""
    found: list[str] = page.evaluate(
        """[document.documentElement, ...document.querySelectorAll(".table-frame")]
        .filter(each => each.scrollWidth > each.clientWidth)
        .filter(each => !each.matches(".table-frame") || getComputedStyle(each.firstElementChild).display === "block")
        .map(each => each.ariaLabel ?? "the page")"""
    )
    return found


def violations(page: Page) -> list[str]:
    """What axe finds wrong with the page as it is shown now."""
    page.evaluate(AXE + ";undefined")
    found: list[str] = page.evaluate(
        "axe.run({resultTypes: ['violations']}).then("
        "r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target + '').join(', ')))"
    )
    return found
