"""What is on record in the end, beside what clients and upstream saw."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from billing.models import UsageCorrection, UsageRecord
from headrace.tests.chaos.crowd import Seen
from headrace.tests.chaos.reference import cost, expected

Tokens = tuple[int, int, int]
LABEL = "client_request_id"


@dataclass
class Books:
    """`wrong`: what cannot be, in words. `statuses`: how the records ended."""

    wrong: list[str] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    exact: int = 0
    total: Decimal = Decimal(0)
    corrections: int = 0


def audit(seen: list[Seen], entries: list[dict[str, Any]]) -> Books:
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
    _admitted(books, seen, by_name, {_name(entry) for entry in entries})
    for name, found in by_name.items():
        if name not in asked:
            books.wrong.append(f"nobody asked {name}")
            continue
        for record in found:
            _charge(books, asked[name], record, late[record.request_id], upstreams.get(record.upstream_id or ""))
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
    books: Books, one: Seen, record: UsageRecord, late: list[UsageCorrection], entry: dict[str, Any] | None
) -> None:
    charged, amount = _tokens(record), record.cost or Decimal(0)
    for row in late:
        charged = tuple(x + y for x, y in zip(charged, _tokens(row), strict=True))  # type: ignore[assignment]
        amount += row.cost or Decimal(0)
    status = late[-1].status if late else record.status
    books.statuses[status] += 1
    books.total += amount
    right = expected(one.ask, status, one.events, entry)
    books.exact += right.least == right.most
    if not right.admits(charged):
        books.wrong.append(f"{one.ask.name} ({status}) is charged {charged}, not {right}: {one} {entry}")
    if amount != cost(*charged):
        books.wrong.append(f"{one.ask.name} costs {amount}, not {cost(*charged)}")


def _tokens(row: UsageRecord | UsageCorrection) -> Tokens:
    return row.input_tokens, row.cached_input_tokens, row.output_tokens
