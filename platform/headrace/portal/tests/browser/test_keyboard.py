"""The portal without a mouse: every stop of the Tab key is seen, from the login to a key that is revoked."""

from playwright.sync_api import Browser, Page, expect

from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, person
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World
from tenants.models import ApiKey, Member, Role


def tab_to(page: Page, words: str, *, most: int = 60) -> None:
    """Press Tab until the focus is on what is called `words`. Wherever it comes by, one has to see it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        name, is_seen = page.evaluate(_FOCUS)
        assert is_seen, f"nobody sees that the focus is on {name}"
        if name == words:
            return
    raise AssertionError(f"the Tab key does not come to {words}")


def enter(page: Page, words: str, heading: str) -> None:
    """Go where `words` leads to: a page with that heading."""
    tab_to(page, words)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()


# The name of the focused element, and whether it is outlined and on the page, not above or under it.
_FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const name = one.labels?.[0]?.innerText || one.getAttribute("aria-label") || one.innerText || one.tagName;
  const isOutlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return [name.trim().split("\\n")[0], isOutlined && box.bottom > 0 && box.width > 0];
}"""


def test_it_can_be_used_by_keyboard(browser: Browser, site: WebProcess, world: World) -> None:
    """Signed in, a key made, copied and revoked, without a mouse."""
    user = person("kim")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.DEVELOPER)
    with chromium.tab(browser, site.url) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto("/account/login/")
        tab_to(page, "Login")
        page.keyboard.type(user.email)
        tab_to(page, "Password")
        page.keyboard.type(PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url("**/t/**")
        tab_to(page, "Skip to the content", most=1)
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        page.goto(f"/t/{world.tenant.slug}/")
        enter(page, "API keys", "API keys")
        enter(page, "Create a key", "New key")
        tab_to(page, "Name")
        page.keyboard.type("by-hand")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="by-hand is made")).to_be_visible()
        tab_to(page, "Copy")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == page.locator("#key-text").inner_text()
        page.goto(f"/t/{world.tenant.slug}/keys/")
        for words, next_one in (("by-hand", "by-hand"), ("Revoke", "Revoke by-hand"), ("Revoke it", "API keys")):
            enter(page, words, next_one)
        expect(page.get_by_text("by-hand is revoked")).to_be_visible()
        assert ApiKey.objects.get(name="by-hand").is_revoked
