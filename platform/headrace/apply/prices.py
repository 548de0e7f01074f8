"""Planning prices. A price in force is never changed: where a document says another, one from now on supersedes it."""

import csv
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from yaml.nodes import ScalarNode

from billing.models import Price
from billing.models.price import LEAD
from billing.price_start import TooEarly, start_of, told_start, whole_ms
from headrace.apply.entries import Entry, Given
from headrace.apply.plan import Change, Plan
from headrace.apply.problems import Problems, near
from headrace.apply.reader import Invalid
from headrace.apply.sections import MODEL, PRICE
from routing.models import Model
from tenants.models import Tenant

COLUMNS = ("model", *PRICE.fields)
Scope = tuple[str, str, str]


def plan_prices(plan: Plan, models: list[Entry], targets: Collection[str]) -> None:
    """Plan the prices of `models`. One without `effective_from` is what holds now; others in its scope stay."""
    now = timezone.now()
    names = [entry.name for entry in models if "prices" in entry.children]
    known: dict[tuple[str, Scope], list[Price]] = defaultdict(list)
    for price in Price.objects.filter(model__in=names).order_by("effective_from"):
        known[price.model, (price.target, price.tenant, price.currency)].append(price)
    tenants = set(Tenant.objects.values_list("slug", flat=True)) | plan.tenants
    for entry in models:
        seen: set[tuple[Scope, datetime | None]] = set()
        for child in entry.children.get("prices", []):
            scope = (child.get("target") or "", child.get("tenant") or "", child.get("currency") or "USD")
            label = _label(entry.name, scope)
            at: datetime | None = child.get("effective_from")
            if (scope, at) in seen:
                plan.problems.add(child.line, f"{label} stands here twice")
            elif scope[1] and scope[1] not in tenants:
                plan.problems.add(
                    child.line_of("tenant"), f'{label}: there is no tenant "{scope[1]}"{near(scope[1], tenants)}'
                )
            elif scope[0] and scope[0] not in targets:
                known_as = f'there is no pool or provider "{scope[0]}"{near(scope[0], targets)}'
                plan.problems.add(child.line_of("target"), f"{label}: {known_as}")
            else:
                _plan_price(plan, child, entry.name, scope, known[entry.name, scope], now)
            seen.add((scope, at))


def _plan_price(plan: Plan, entry: Entry, model: str, scope: Scope, known: list[Price], now: datetime) -> None:
    label = _label(model, scope)
    missing = [name for name in ("input", "output") if name not in entry.given]
    if missing:
        if not any(problem.line == entry.line for problem in plan.problems.found):  # else it could not be read
            plan.problems.add(entry.line, f"{label} wants {' and '.join(missing)}, in units per million tokens")
        return
    at: datetime | None = entry.get("effective_from")
    at = at and whole_ms(at)
    if at is None:
        price = next((row for row in reversed(known) if row.effective_from <= now + LEAD), None)
    else:
        price = next((row for row in known if row.effective_from == at), None)
    wanted = {name: given.value for name, given in entry.given.items() if given.value is not None}
    wanted.setdefault("cached_input", wanted["input"])
    if at is not None:
        wanted["effective_from"] = at
    wanted["cache_hit"] = entry.get("cache_hit")
    if price is not None and all(getattr(price, name) == value for name, value in wanted.items()):
        return
    is_to_come = price is not None and at is not None and not price.is_fixed
    try:
        begin = start_of(Price(model=model, target=scope[0], tenant=scope[1], currency=scope[2]), at)
    except TooEarly:
        what = "is in force and stays as it is" if price else "lies in the past, which stays as it was charged"
        when = at.isoformat() if at else ""
        plan.problems.add(entry.line_of("effective_from"), f"{label}: {when} {what}; set one from now on")
        return
    if price is not None and at is not None and begin == at and not is_to_come:
        what = f"{label}: {at.isoformat()} is about to begin and stays as it is; set one from a later moment on"
        plan.problems.add(entry.line_of("effective_from"), what)
        return
    row = price if price is not None and is_to_come else Price(model=model)
    if begin != at:  # which is told once it is certain (tell_starts)
        wanted.pop("effective_from", None)
        row.effective_from = begin
    plan.put(row, entry, label, wanted)


def tell_starts(changes: list[Change]) -> None:
    """Say of each price that was written from when to when it holds, as the database has it by now."""
    for change in changes:
        for row, _ in change.saves:
            if isinstance(row, Price):
                row.refresh_from_db(fields=["effective_from"])
                change.outcome = f"{row} holds from {told_start(row)}"


def _label(model: str, scope: Scope) -> str:
    target, tenant, currency = scope
    return f"price of {model}{f' at {target}' if target else ''}{f' for {tenant}' if tenant else ''} in {currency}"


def current_prices(models: list[Model]) -> Mapping[str, list[Price]]:
    """Of each model the prices in force, or about to be, and those still to come."""
    now, found = timezone.now(), defaultdict(list)
    rows = list(Price.objects.filter(model__in=[model.name for model in models]).order_by("effective_from"))
    for at, price in enumerate(rows):
        scope = (price.model, price.target, price.tenant, price.currency)
        later = [row for row in rows[at + 1 :] if (row.model, row.target, row.tenant, row.currency) == scope]
        if not any(row.effective_from <= now + LEAD for row in later):
            found[price.model].append(price)
    return found


def read_csv(text: str, problems: Problems) -> list[Entry]:
    """A price list: a header, of COLUMNS in any order, then a price a line; an empty cell says nothing.

    Its separator is the header's: a comma, or what spreadsheets write where the comma is the decimal sign.
    """
    first = text.partition("\n")[0]
    separator = next((each for each in ",;\t" if each in first), ",")
    lines = csv.DictReader(text.splitlines(), delimiter=separator)
    header = [name.strip() for name in lines.fieldnames or []]
    lines.fieldnames = header
    for name in header:
        if name not in COLUMNS:
            problems.add(1, f'unknown column "{name}"{near(name, COLUMNS)}')
    if "model" not in header:
        problems.add(1, "the first line names the columns, of which one is model")
    models: dict[str, Entry] = {}
    for row in lines if not problems.found else ():
        name = (row.pop("model") or "").strip()
        model = models.setdefault(name, Entry(MODEL, name, lines.line_num, 0, children={"prices": []}))
        if separator == ";":
            row = {column: _with_point(cell) for column, cell in row.items()}
        price = Entry(PRICE, "", lines.line_num, 0, dict(_cells(row, lines.line_num, problems)))
        model.children["prices"].append(price)
    return list(models.values())


def _with_point(cell: Any) -> Any:
    """A number as spreadsheets write it beside semicolons, with a decimal comma; anything else as it is."""
    return cell.replace(",", ".") if isinstance(cell, str) and re.fullmatch(r"\s*\d+,\d+\s*", cell) else cell


def _cells(row: Mapping[str, Any], line: int, problems: Problems) -> Iterator[tuple[str, Given]]:
    for name, cell in row.items():
        if name is None or not isinstance(cell, str):
            problems.add(line, "more or fewer cells than columns")
            return
        if not cell.strip():
            continue
        tag = "float" if name in {"input", "cached_input", "output", "cache_hit"} else "str"
        try:
            yield name, Given(PRICE.fields[name](ScalarNode(f"tag:yaml.org,2002:{tag}", cell.strip())), line)
        except Invalid as error:
            problems.add(line, f"{name} {error}")
