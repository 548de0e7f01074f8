"""Tables on a phone: rows as cards that are still tables to who listens, figures that stay columns, paper as before."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Page

from billing.drain import drain_all
from billing.models import Price
from billing.tests.stream import append, connect, usage_event
from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, person
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World
from tenants.models import Member, Role

LABEL = "cell => getComputedStyle(cell, '::before').content"
LAYOUT = "table => [table, table.tBodies[0].rows[0]].map(each => getComputedStyle(each).display)"


@pytest.fixture
def owner(world: World) -> str:
    user = person(f"nora-{world.tenant.pk}")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.OWNER)
    return user.email


def test_it_shows_a_row_as_a_card(browser: Browser, site: WebProcess, world: World, owner: str) -> None:
    with chromium.tab(browser, site.url, width=390) as page:
        chromium.sign_in(page, owner, PASSWORD)
        page.goto(f"/t/{world.tenant.slug}/keys/")
        table = page.get_by_role("table")
        assert table.evaluate(LAYOUT) == ["block", "grid"]
        assert table.get_by_role("columnheader").all_inner_texts()[:3] == ["Name", "Project", "State"]
        row = table.get_by_role("row").filter(has=page.get_by_role("rowheader"))
        assert row.get_by_role("cell").nth(1).evaluate(LABEL).startswith('"State"')
        page.emulate_media(media="print")
        assert table.evaluate(LAYOUT) == ["table", "table-row"]
        page.set_viewport_size({"width": 1440, "height": 900})
        page.emulate_media(media="screen")
        assert table.evaluate(LAYOUT) == ["table", "table-row"]
        assert row.get_by_role("cell").nth(1).evaluate(LABEL) == "none"


def append_request(world: World) -> None:
    with connect() as client:
        event = usage_event(
            datetime.now(UTC) - timedelta(minutes=1), tenant=world.tenant.pk, project="app", key=world.key.pk,
            model=world.model, currency=world.tenant.currency, price=Price.objects.get(model=world.model).version,
        )  # fmt: skip
        append(client, event)
        drain_all(client)


def test_it_labels_what_arrives_later_too(browser: Browser, site: WebProcess, world: World, owner: str) -> None:
    append_request(world)
    with chromium.tab(browser, site.url, width=390) as page:
        chromium.sign_in(page, owner, PASSWORD)
        page.goto(f"/t/{world.tenant.slug}/requests/")
        page.get_by_text("Live", exact=True).wait_for()
        append_request(world)
        arrived = page.locator("tr.is-new")
        arrived.wait_for()
        assert page.locator("thead").count() == 1
        assert arrived.get_by_role("cell").first.evaluate(LABEL).startswith('"Model"')


def left(page: Page) -> tuple[float, float]:
    frame = page.get_by_role("region", name="Usage")
    first, last = (frame.locator(f"tbody tr > :{which}-child").first.bounding_box() for which in ("first", "last"))
    assert first is not None
    assert last is not None
    return first["x"], last["x"]


def test_it_keeps_the_names_of_figures_in_sight(browser: Browser, site: WebProcess, world: World, owner: str) -> None:
    append_request(world)
    with chromium.tab(browser, site.url, width=390) as page:
        chromium.sign_in(page, owner, PASSWORD)
        page.goto(f"/t/{world.tenant.slug}/usage/")
        names, costs = left(page)
        page.get_by_role("region", name="Usage").evaluate("frame => { frame.scrollLeft = 9999; }")
        assert left(page)[0] == pytest.approx(names, abs=1)
        assert left(page)[1] < min(costs, 390)
