"""Every page asks as many queries of a tenant with many rows as of one with few: a new address is asked by itself."""

from difflib import ndiff

import pytest

from headrace_dev.bench.ledger import addresses, closing
from headrace_dev.bench.ledger.pages import MOST_QUERIES, admin_pages, ask, counted, portal_pages, signed_in
from headrace_dev.bench.ledger.seeding.belongings import owner_of
from headrace_dev.bench.ledger.seeding.size import Size
from tenants.models import ApiKey, Tenant

PAGES = addresses.shown_to_owners()


@pytest.fixture(scope="module")
def tenants(seeded: Size) -> list[Tenant]:
    """The one with the most of everything, and the one with the least."""
    closing.measure(seeded.tenants, print)
    return [Tenant.objects.get(pk=f"tenant-{number}") for number in (0, seeded.tenants - 1)]


def queries(name: str, tenant: Tenant, query: str) -> list[str]:
    client, url = signed_in(owner_of(tenant.pk)), addresses.address(PAGES[name], tenant)
    assert ask(client, url, query).status_code == 200
    with counted() as statements:
        ask(client, url, query)
    return statements


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_no_more_for_more_rows(tenants: list[Tenant], name: str) -> None:
    large, small = tenants
    assert ApiKey.objects.of(large).count() > 2 * ApiKey.objects.of(small).count()
    for query in ("", *addresses.FURTHER.get(name, ())):
        asked, fewer = queries(name, large, query), queries(name, small, query)
        assert len(asked) <= len(fewer), "\n".join(ndiff(fewer, asked))
        assert len(asked) <= MOST_QUERIES, "\n".join(asked)


def test_no_page_of_the_operators_asks_one_query_a_row(tenants: list[Tenant]) -> None:
    for name, asked in admin_pages(tenants).items():
        assert (asked.failed, max(asked.queries) <= MOST_QUERIES) == (0, True), name


def test_it_knows_the_pages_it_asks_more_of() -> None:
    assert addresses.FURTHER.keys() <= PAGES.keys()


@pytest.mark.bench
def test_it_opens_every_page_of_the_portal(tenants: list[Tenant]) -> None:
    assert portal_pages(tenants[:1]).keys() >= PAGES.keys()
