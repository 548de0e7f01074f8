"""What a new price comes to, in an operator's words: what it replaces, for whom, and for whom not."""

from django.utils import timezone

from billing import amounts
from billing.models import Price
from billing.models.price import LEAD, PriceQuerySet
from billing.price_start import successor_of
from headrace.console.confirmation import Change
from tenants.models import Tenant

RATES = {"input": "Uncached input", "cached_input": "Cached input", "output": "Output"}
NONE, AT_ONCE = "no price", "at once, when you say yes; two seconds later where it takes another's place"


def price_state(price: Price | None) -> dict[str, str]:
    if price is None:
        return dict.fromkeys(["In force from", *(f"{title}, per million tokens" for title in RATES.values())], NONE)
    state = {"In force from": f"{price.effective_from:%Y-%m-%d %H:%M} UTC"}
    for name, title in RATES.items():
        state[f"{title}, per million tokens"] = amounts.priced(getattr(price, name), price.currency)
    if price.cache_hit is not None:
        state["An answer out of the response cache"] = amounts.priced(price.cache_hit, price.currency)
    return state


def is_at_once(price: Price) -> bool:
    return price.effective_from <= timezone.now() + 2 * LEAD


def replaced_by(price: Price) -> Price | None:
    """What the same requests pay just before it: in the order in which prices are looked up (models/price.py)."""
    for target, tenant in _scopes(price):
        rows = _others(price).filter(target=target, tenant=tenant, effective_from__lt=price.effective_from)
        if found := rows.order_by("-effective_from").first():
            return found
    return None


def narrower_than(price: Price) -> list[Price]:
    """The prices, in force or to come, that count before it for some of its requests: the latest of each scope."""
    latest: dict[tuple[str, str], Price] = {}
    for other in _others(price).order_by("effective_from"):
        meets = all(
            not mine or not theirs or mine == theirs
            for mine, theirs in ((price.tenant, other.tenant), (price.target, other.target))
        )
        if meets and _rank(other) > _rank(price):
            latest[other.target, other.tenant] = other
    return list(latest.values())


def changes_of(price: Price, before: dict[str, str]) -> list[Change]:
    after = price_state(price)
    if is_at_once(price):
        after["In force from"] = AT_ONCE
    return [Change(name, before.get(name, NONE), after.get(name, NONE)) for name in {**after, **before}]


def effects_of(price: Price) -> list[str]:
    moment = f"from {price.effective_from:%Y-%m-%d %H:%M} UTC on"
    if is_at_once(price):
        moment = "as soon as you say yes"
    where = f" at {price.target}" if price.target else ""
    effects = [
        f"It is what {_whom(price)} pays for {price.model}{where} {moment}. Requests admitted before keep their price.",
        "Once its time has come it can be neither changed nor removed, only superseded.",
    ]
    if old := replaced_by(price):
        same = (old.target, old.tenant) == (price.target, price.tenant)
        effects.insert(1, f"It takes the place of {old}{'' if same else f', which stays for {_scope(old)}'}.")
    if later := successor_of(price):
        until = f"{later.effective_from:%Y-%m-%d %H:%M:%S} UTC"
        effects.append(f"It holds until {until}, when {later}, which is set already, takes its place.")
    if own := narrower_than(price):
        effects.append("Not for " + ", ".join(f"{_scope(other)} ({other})" for other in own) + ": those come first.")
    return effects


def _others(price: Price) -> PriceQuerySet:
    return Price.objects.filter(model=price.model, currency=price.currency).exclude(pk=price.pk)


def _scopes(price: Price) -> list[tuple[str, str]]:
    """Its own scope, and those that are looked at after it, as (target, tenant)."""
    wider = [(price.target, price.tenant), ("", price.tenant), (price.target, ""), ("", "")]
    return list(dict.fromkeys(wider))


def _rank(price: Price) -> tuple[bool, bool]:
    return bool(price.tenant), bool(price.target)


def _scope(price: Price) -> str:
    return " at ".join(filter(None, [price.tenant or "all tenants", price.target]))


def _whom(price: Price) -> str:
    if price.tenant:
        return price.tenant
    count = Tenant.objects.filter(currency=price.currency).count()
    return f"every tenant with {price.currency} as its currency ({count:,} now)"
