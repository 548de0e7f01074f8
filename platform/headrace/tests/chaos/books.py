"""What is on record in the end, beside what clients and upstream saw."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from billing.models import UsageCorrection, UsageRecord
from headrace.tests.chaos.crowd import Seen
from headrace.tests.chaos.reference import Prices, expected

Tokens = tuple[int, int, int]
LABEL = "client_request_id"


@dataclass
class Books:
    """`wrong`: what cannot be, in words. `statuses`: how the records ended."""

    wrong: list[str] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    exact: int = 0
    later: int = 0  # priced after the change
    total: Decimal = Decimal(0)
    corrections: int = 0
    thawed: int = 0  # reaped, while their process stood still and went on later
    uncounted: int = 0  # of liars, whose text the engine's tokenizer was too busy to count


def audit(seen: list[Seen], entries: list[dict[str, Any]], prices: Prices) -> Books:
    """Compare the ledger with what the clients saw and with the upstream's own log."""
    books = Books()
    records = list(UsageRecord.objects.order_by("admitted_at"))
    by_name: dict[str, list[UsageRecord]] = defaultdict(list)
    for record in records:
        by_name[record.labels.get(LABEL, "?")].append(record)
    late: dict[Any, list[UsageCorrection]] = defaultdict(list)
    for row in UsageCorrection.objects.all():
        late[row.request_id].append(row)
        books.corrections += 1
    asked = {one.ask.name: one for one in seen}
    upstreams = {entry["rid"]: entry for entry in entries}
    by_ask = {_name(entry): entry for entry in entries}
    _admitted(books, seen, by_name, {_name(entry) for entry in entries})
    for name, found in by_name.items():
        if name not in asked:
            books.wrong.append(f"nobody asked {name}")
            continue
        for record in found:
            # A reaper that was told of no upstream names none; the late word that corrects it came from one.
            entry = upstreams.get(record.upstream_id or "")
            if entry is None and late[record.request_id]:
                entry = by_ask.get(name)
            _charge(books, asked[name], record, late[record.request_id], entry, prices)
    return books


def _name(entry: dict[str, Any]) -> str:
    """The request's own name, which stands after its script."""
    content: str = entry["body"]["messages"][0]["content"]
    return content.rpartition("} ")[2].split()[0]


def _admitted(books: Books, seen: list[Seen], by_name: dict[str, list[UsageRecord]], at_upstream: set[str]) -> None:
    """Every admitted request has one record: those answered, and those that reached the upstream."""
    for one in seen:
        name, records = one.ask.name, by_name.get(one.ask.name, [])
        must = name in at_upstream or one.status == 200
        if len(records) > 1:
            books.wrong.append(f"{name} has {len(records)} records")
        elif must and not records:
            books.wrong.append(f"{name} was admitted and has no record: {one}")
        elif records and one.status == 200 and str(records[0].request_id) != one.request_id:
            books.wrong.append(f"{name} was answered as {one.request_id}, recorded as {records[0].request_id}")
        elif records and not must and _tokens(records[0]) != (0, 0, 0):
            books.wrong.append(f"{name} never reached the upstream and is charged: {_tokens(records[0])}")
        if one.was_refused and records and _tokens(records[0]) != (0, 0, 0):
            books.wrong.append(f"{name} was refused ({one.end}) and is charged: {_tokens(records[0])}")


def _charge(
    books: Books,
    one: Seen,
    record: UsageRecord,
    late: list[UsageCorrection],
    entry: dict[str, Any] | None,
    prices: Prices,
) -> None:
    charged, amount = _tokens(record), record.cost or Decimal(0)
    for row in late:
        charged = tuple(x + y for x, y in zip(charged, _tokens(row), strict=True))  # type: ignore[assignment]
        amount += row.cost or Decimal(0)
    status = late[-1].status if late else record.status
    books.statuses[status] += 1
    books.total += amount
    is_counted = "counted" in {record.usage_source, *(row.usage_source for row in late)}
    right = expected(one.ask, status, one.events, one.end, entry, is_counted=is_counted)
    books.thawed += record.status == "reaped" and one.end in {"lease_lost", "upstream_timeout"}
    books.exact += right.least == right.most
    if not right.admits(charged) and record.usage_source == "estimated" and one.ask.is_liar:
        books.uncounted += 1
    elif not right.admits(charged):
        books.wrong.append(f"{one.ask.name} ({status}) is charged {charged}, not {right}: {one} {entry}")
    books.later += prices.is_later(record.admitted_at)
    if amount != (right_cost := prices.cost(record.admitted_at, charged)):
        books.wrong.append(f"{one.ask.name} of {record.admitted_at} costs {amount}, not {right_cost}")


def _tokens(row: UsageRecord | UsageCorrection) -> Tokens:
    return row.input_tokens, row.cached_input_tokens, row.output_tokens
