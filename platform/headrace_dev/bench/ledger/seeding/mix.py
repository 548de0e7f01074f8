"""Who asks for what, how often: a table that each record is drawn from.

A row is a slot and a variant. A key has slots by its weight, one at least, and they lie beside each other; an hour
draws from one slot in PHASES alone, so that large keys are busy all the time, and small ones, as people and jobs are,
in few hours and then more than once. Of the eight variants six are the key's usual model where it is usually served.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from django.db import connection

from billing.price_book import SELECT, PriceBook
from headrace_dev.bench.ledger.seeding.cast import Caller
from headrace_dev.bench.ledger.seeding.offers import MODELS, places_of

PHASES, VARIANTS = 32, 8
TABLE = "bench_mix"
CREATE = f"""
CREATE UNLOGGED TABLE {TABLE} (
    id integer, tenant text, project text, key text, model text, target text, replica text, currency varchar(3),
    price text, input numeric, cached_input numeric, output numeric, time_zone text
)"""
COLUMNS = (
    "id", "tenant", "project", "key", "model", "target", "replica", "currency", "price", "input", "cached_input",
    "output", "time_zone",
)  # fmt: skip


def slots_for(callers: int) -> int:
    """A power of two, six for each caller at least."""
    return max(PHASES, 1 << (6 * callers - 1).bit_length())


def rows(callers: Sequence[Caller], at: datetime) -> Iterator[tuple[object, ...]]:
    """The table's rows, in the order of COLUMNS, at the prices in force at `at`."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT)
        book = PriceBook(cursor.fetchall())
    at_ms = int(at.astimezone(UTC).timestamp() * 1000)
    for slot, place in enumerate(_places([caller.weight for caller in callers])):
        caller = callers[place]
        for variant, (model, target) in enumerate(_variants(place)):
            quote = book.find(
                model=model, target=target, tenant=caller.tenant.slug, currency=caller.tenant.currency, at_ms=at_ms
            )
            assert quote is not None, (model, target)
            yield (
                slot * VARIANTS + variant, caller.tenant.slug, caller.project, caller.key, model, target,
                f"{target}/r{slot % 4}", caller.tenant.currency, quote.version, quote.rates.input,
                quote.rates.cached_input, quote.rates.output, caller.tenant.time_zone,
            )  # fmt: skip


def _places(weights: list[float]) -> Iterator[int]:
    """Of each slot its caller: one for each, the others by weight."""
    slots = slots_for(len(weights))
    free, whole, given, passed = slots - len(weights), sum(weights), 0, 0.0
    for place, weight in enumerate(weights):
        passed += weight
        due = free if place == len(weights) - 1 else round(free * passed / whole)
        yield from [place] * (1 + due - given)
        given = due


def _variants(place: int) -> list[tuple[str, str]]:
    usual, second = MODELS[place % len(MODELS)], MODELS[(place + 3) % len(MODELS)]
    return [(usual, places_of(usual).usual)] * 6 + [(usual, places_of(usual).other), (second, places_of(second).usual)]
