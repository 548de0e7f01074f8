"""What a million tokens cost, at the load as it was and at full load, beside what they were sold for."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from billing.cost import hosted
from billing.cost.arithmetic import break_even, full_load, per_million
from billing.cost.export import totals
from billing.cost.line import Line
from billing.cost.report import Report, report
from billing.cost.report_query import Asked, bucket_start
from billing.cost.tests.world import DAY, HOUR, pool, up, used
from billing.models import ExchangeRate, Price
from engines.models import Provider

pytestmark = pytest.mark.django_db

NOW = DAY + timedelta(days=40)


def made(by: str = "day", *, days: float = 1, start: datetime = DAY, **asked: object) -> Report:
    return report(Asked(start, start + timedelta(days=days), by, **asked), now=NOW)  # type: ignore[arg-type]


def only(found: Report) -> Line:
    (line,) = found.lines
    return line


def test_it_makes_2_50_an_hour_0_2778_a_million_at_2500_tokens_a_second_and_ten_times_that_at_a_tenth() -> None:
    pool()
    for number in range(24):
        up(DAY + number * HOUR)
        used(DAY + number * HOUR, 2500 * 3600 if number == 0 else 250 * 3600)
    lines = made("hour").lines
    assert lines[0].per_output == Decimal("0.277778")
    assert lines[1].per_output == Decimal("2.777778")
    assert [lines[0].utilisation, lines[1].utilisation] == [1.0, 0.1]
    assert lines[1].full_per_output == Decimal("0.277778")
    assert per_million(Decimal("2.5"), 2500 * 3600) == lines[0].per_output
    assert full_load(Decimal(5), 2, 2500 * 3600) == Decimal("0.277778")


def test_it_counts_all_tokens_in_the_second_figure() -> None:
    pool()
    up(DAY)
    used(DAY, 1_000_000, prompt=4_000_000, cached=3_000_000)
    line = only(made("hour", days=1 / 24))
    assert (line.per_output, line.per_token) == (Decimal("2.5"), Decimal("0.5"))
    assert (line.tokens.uncached, line.tokens.cached) == (1_000_000, 3_000_000)


def test_it_shows_no_figure_for_an_idle_pool_and_its_cost_all_the_same() -> None:
    pool()
    up(DAY)
    line = only(made("hour", days=1 / 24))
    assert (line.model, line.per_output, line.per_token, line.utilisation) == ("", None, None, None)
    assert line.cost == Decimal("2.5")


def test_it_takes_hours_nobody_sampled_for_a_gap_and_not_for_free() -> None:
    pool()
    up(DAY)
    used(DAY, 1_000_000)
    up(DAY + 2 * HOUR, covered=1200)
    used(DAY + 2 * HOUR, 1_000_000)
    used(DAY + 3 * HOUR, 5_000_000)
    line = only(made(days=4 / 24))
    assert line.gap_seconds == 3600 + 2400 + 3600
    assert line.tokens.output == 7_000_000
    assert line.per_output == Decimal("2.5")  # of the one hour that was seen
    hours = made("hour", days=4 / 24).lines
    assert [(hour.per_output, hour.gap_seconds) for hour in hours] == [
        (Decimal("2.5"), 0), (None, 3600), (None, 2400), (None, 3600),
    ]  # fmt: skip
    assert hours[1].cost is None


def test_it_has_no_gap_before_a_pool_was_first_seen_nor_after_it_is_gone() -> None:
    up(DAY + 5 * HOUR)  # of a pool that is no more
    assert only(made()).gap_seconds == 0


def test_it_has_no_line_before_a_pool_was_first_sampled_or_used() -> None:
    pool("new")
    assert made(days=40).lines == []
    used(DAY + 36 * HOUR, 1_000_000, name="new")
    lines = made(days=40).lines
    assert [line.start for line in lines] == [DAY + number * 24 * HOUR for number in range(1, 40)]
    assert [line.gap_seconds for line in lines[:2]] == [12 * 3600, 24 * 3600]
    up(DAY + 60 * HOUR, name="new")  # from here on it costs something, and what is missing is a gap
    assert [(line.start, line.gap_seconds) for line in made(days=40).lines[:3]] == [
        (DAY + 24 * HOUR, 0), (DAY + 48 * HOUR, 11 * 3600), (DAY + 72 * HOUR, 24 * 3600),
    ]  # fmt: skip


def test_it_never_adds_up_two_currencies() -> None:
    pool("a")
    pool("b", cost_currency="EUR")
    up(DAY, name="a")
    up(DAY, name="b", cost="4", currency="EUR")
    found = made()
    assert {(line.pool, line.currency, line.cost) for line in found.lines} == {
        ("a", "USD", Decimal("2.5")), ("b", "EUR", Decimal(4)),
    }  # fmt: skip
    assert found.currencies == ["EUR", "USD"]


def test_it_converts_at_the_latest_rate_not_after_the_day_and_says_which_is_missing() -> None:
    pool(cost_currency="EUR")
    up(DAY, cost="10", currency="EUR")
    used(DAY, 1_000_000, cost="22")
    line = only(made())
    assert (line.charged, line.margin, line.missing) == (None, None, ("USD/EUR",))
    ExchangeRate.objects.create(base="EUR", quote="USD", rate=Decimal("1.1"), day=date(2026, 3, 2))
    ExchangeRate.objects.create(base="EUR", quote="USD", rate=Decimal(9), day=date(2026, 3, 3))
    line = only(made())
    assert (line.charged, line.margin, line.missing) == (Decimal(20), Decimal(10), ())
    in_dollars = only(made(currency="USD"))
    assert (in_dollars.cost, in_dollars.charged, in_dollars.margin) == (Decimal(11), Decimal(22), Decimal(11))
    assert only(made(currency="GBP")).missing == ("EUR/GBP", "USD/GBP")
    assert only(made(currency="GBP")).cost is None


def test_it_shares_a_pool_s_cost_between_its_models_by_their_tokens() -> None:
    pool()
    up(DAY, cost="8")
    used(DAY, 1_000_000, prompt=5_000_000)
    used(DAY, 2_000_000, model="other", cost="3")
    chat, other = made().lines
    assert (chat.cost, other.cost, other.margin) == (Decimal(6), Decimal(2), Decimal(1))
    assert chat.per_token == other.per_token == Decimal(1)
    assert made(model="other").lines == [other]


def cost_of(found: Report) -> Decimal:
    return sum((line.cost for line in found.lines if line.cost is not None), Decimal(0))


@pytest.mark.parametrize("by", ["hour", "day", "month"])
def test_cost_is_shared_once_where_no_hour_was_sampled_well(by: str) -> None:
    pool(cost_currency="EUR")
    up(DAY, cost="1", covered=400, currency="EUR")  # 0.111111 EUR, of a ninth of the hour
    for number, model in enumerate("abcde"):
        used(DAY, 1_000_000 * (number + 1), model=model)
    found = made(by)
    assert cost_of(found) == Decimal("0.111111")
    shares = [line.cost for line in found.lines if line.cost]
    assert shares == [Decimal(each) for each in ("0.007407", "0.014815", "0.022222", "0.029630", "0.037037")]
    (total,) = totals(found)
    assert total["cost"] == "0.111111"
    assert made(by, model="c").lines[0].cost == Decimal("0.022222")


def test_cost_is_shared_evenly_between_models_without_tokens() -> None:
    pool()
    up(DAY, cost="1", covered=400)
    for model in "abc":
        used(DAY, 0, model=model)
    assert [line.cost for line in made().lines] == [Decimal("0.037037")] * 3


def test_shares_add_up_to_the_cost_whatever_they_round_to() -> None:
    pool()
    up(DAY, cost="0.1")
    for number in range(7):
        used(DAY, 1_000_000, model=f"m{number}")
    found = made()
    assert cost_of(found) == Decimal("0.1")
    assert all(
        line.margin == line.charged - line.cost for line in found.lines if line.charged is not None and line.cost
    )


def test_model_that_ran_only_while_nobody_sampled_has_its_tokens_in_no_share() -> None:
    pool()
    up(DAY, cost="6")
    used(DAY, 1_000_000)
    used(DAY + HOUR, 1_000_000, model="other")
    chat, other = made("day", days=2 / 24).lines
    assert (chat.cost, other.cost, cost_of(made("day", days=2 / 24))) == (Decimal(6), Decimal(0), Decimal(6))


def test_cost_in_two_currencies_is_told_once_in_each_with_the_tokens_in_one() -> None:
    pool(cost_currency="EUR")
    up(DAY, cost="6", covered=2400)
    up(DAY, cost="6", covered=1200, currency="EUR")
    up(DAY + HOUR, cost="3", currency="EUR")
    for hour in (DAY, DAY + HOUR, DAY + 5 * HOUR):  # of the last there is no sample
        used(hour, 1_000_000, cost="9", currency="EUR")
        used(hour, 1_000_000, cost="9", currency="EUR", model="other")
    found = made("day", days=0.5)
    costs = {name: sum(line.cost or 0 for line in found.lines if line.currency == name) for name in found.currencies}
    assert costs == {"EUR": Decimal(5), "USD": Decimal(4)}
    assert sum(line.tokens.output for line in found.lines) == 6_000_000
    ExchangeRate.objects.create(base="EUR", quote="USD", rate=Decimal(2), day=date(2026, 3, 1))
    in_dollars = made("day", days=0.5, currency="USD")
    assert cost_of(in_dollars) == Decimal(14)
    assert sum(line.charged or 0 for line in in_dollars.lines) == 54 * 2


def test_it_compares_with_a_provider_s_price_or_the_one_given() -> None:
    pool()
    Provider.objects.create(name="rented", base_url="https://api.example.com/v1")
    Price.objects.create(
        model="chat",
        target="rented",
        input=Decimal(1),
        cached_input=Decimal("0.5"),
        output=Decimal(4),
        effective_from=DAY,
    )
    up(DAY)
    used(DAY, 1_000_000, prompt=2_000_000, cached=1_000_000)
    up(DAY + HOUR)
    line = only(made())
    assert (line.hosted, line.hosted_per_output) == ("rented", Decimal("5.5"))
    assert line.hosted_per_token == Decimal("1.833333")
    assert (line.per_output, line.full_per_output, line.utilisation) == (Decimal(5), Decimal("2.5"), 0.5)
    assert line.break_even == pytest.approx(2.5 / 5.5, abs=1e-4)
    own = only(made(hosted=hosted.given(Decimal(0), Decimal(1), "USD")))
    assert own.break_even == 2.5  # the provider is cheaper at any load
    assert break_even(None, Decimal(1)) is None


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (date(2026, 6, 1), 24)])
def test_it_makes_days_of_23_and_25_hours_where_clocks_change(day: date, hours: int) -> None:
    zone = ZoneInfo("Europe/Berlin")
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
    pool()
    for number in range(-2, 28):
        up(midnight + number * HOUR)
    asked = Asked(midnight - 2 * HOUR, midnight + 28 * HOUR, "day", zone)
    lines = report(asked, now=datetime(2027, 1, 1, tzinfo=UTC)).lines
    assert [line.up_hours for line in lines] == [2, hours, 28 - hours]
    assert lines[1].cost == hours * Decimal("2.5")
    assert bucket_start(midnight, "month", zone).day == 1
