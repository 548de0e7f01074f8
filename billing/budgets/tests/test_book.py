"""The meters above a request: whose budgets count it, in which window, up to how much."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from billing.budgets.book import BudgetBook
from billing.periods import Zones
from tenants.meters.meter import Meter

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def row(number: int, **changes: Any) -> tuple[Any, ...]:
    values = {
        "id": number, "tenant": "acme", "project": "", "key": "", "model": "", "name": f"b{number}",
        "amount": Decimal("12.5"), "period": "month", "hard": True, "extra": None, "extra_until": None,
    }  # fmt: skip
    return tuple((values | changes).values())


def meters(book: BudgetBook, at: datetime = NOON, **scope: str) -> list[Meter]:
    whose = {"tenant": "acme", "project": "web", "key": "ABC", "model": "demo"} | scope
    return book.meters(book.above(**whose), at_ms=int(at.timestamp() * 1000))


def test_it_finds_the_budgets_of_tenant_project_key_and_model() -> None:
    book = BudgetBook(
        [
            row(1),
            row(2, project="web"),
            row(3, project="mobile"),
            row(4, key="ABC", model="demo"),
            row(5, key="ABC", model="other"),
            row(6, tenant="globex"),
        ]
    )
    assert [meter.scope for meter in meters(book)] == ["b1", "b2", "b4"]
    assert [meter.scope for meter in meters(book, project="mobile", key="X")] == ["b1", "b3"]
    assert meters(book, tenant="nobody") == []


def test_it_counts_in_the_tenants_own_days() -> None:
    book = BudgetBook([row(1, period="day", hard=False)])
    tokyo = Zones([("acme", date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), "Asia/Tokyo")])
    [here], [there] = meters(book), meters(BudgetBook([row(1, period="day")], tokyo))
    assert (here.kind, here.limit) == ("soft_budget", 12_500_000_000)
    assert here.key == f"hr:b:1:{int(datetime(2026, 1, 31, tzinfo=UTC).timestamp())}"
    assert there.key == f"hr:b:1:{int(datetime(2026, 1, 30, 15, tzinfo=UTC).timestamp())}"
    [late] = meters(book, datetime(2026, 1, 31, 23, 59, 59, 999_000, tzinfo=UTC))
    [next_day] = meters(book, datetime(2026, 2, 1, tzinfo=UTC))
    assert late.key == here.key != next_day.key


def test_an_increase_counts_until_its_end() -> None:
    book = BudgetBook([row(1, extra=Decimal("0.5"), extra_until=NOON)])
    before = datetime(2026, 1, 31, 11, 59, 59, 999_000, tzinfo=UTC)
    for at, limit in [(before, 13), (NOON, 12.5), (before, 13)]:
        [meter] = meters(book, at)
        assert meter.limit == limit * 10**9


def test_it_is_exact_to_the_nano_unit() -> None:
    [meter] = meters(BudgetBook([row(1, amount=Decimal("9999999.999999999"))]))
    assert meter.limit == 10**16 - 1


def test_a_change_costs_nobody_but_its_tenant() -> None:
    """What is the same object was not made again."""
    book = BudgetBook([row(2), row(1), row(3, tenant="globex")])
    [globex] = meters(book, tenant="globex")
    book.change([1, 4], [row(4, project="web"), row(2, amount=Decimal(3))])
    assert [(meter.scope, meter.limit) for meter in meters(book)] == [("b2", 3 * 10**9), ("b4", 12_500_000_000)]
    [kept] = meters(book, tenant="globex")
    assert kept is globex
    book.change([2, 4], [])
    assert meters(book) == []


def test_a_change_of_zone_moves_that_tenants_windows() -> None:
    book = BudgetBook([row(1, period="day"), row(2, period="day", tenant="globex")])
    [before], [globex] = meters(book), meters(book, tenant="globex")
    tokyo = ("acme", date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), "Asia/Tokyo")
    for _ in range(2):
        book.change_zones(["acme"], [tokyo])
        [after], [kept] = meters(book), meters(book, tenant="globex")
        assert after.key == f"hr:b:1:{int(datetime(2026, 1, 30, 15, tzinfo=UTC).timestamp())}" != before.key
        assert kept is globex
