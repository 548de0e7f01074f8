"""The models this tenant may call: their windows, what they cost it now, and the code that calls them."""

from dataclasses import dataclass

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from billing.models import Price
from headrace.portal.endpoint import api_base
from headrace.portal.request import PortalRequest, asked
from routing.models import Model, Target
from tenants.models import Tenant


@dataclass(frozen=True, slots=True)
class Offer:
    """A model with the tenant's prices in force, the dearest target's first; `live` of its replicas are enabled."""

    model: Model
    prices: list[Price]
    targets: list[str]

    @property
    def price(self) -> Price | None:
        return self.prices[0] if self.prices else None


def models(request: PortalRequest) -> HttpResponse:
    offers = offers_of(request.tenant)
    wanted = asked(request, "model")
    chosen = next((offer for offer in offers if offer.model.name == wanted), usual(offers))
    context = {"offers": offers, "chosen": chosen, "base": api_base(request)}
    return render(request, "portal/models.html", context)


def offers_of(tenant: Tenant) -> list[Offer]:
    targets: dict[str, list[str]] = {}
    # Which targets there are is the operators' own table; what a tenant is told of them is their names, as on records.
    for target in Target.objects.using("default").order_by("route_id", "position"):
        targets.setdefault(target.route_id, []).append(target.slug)
    prices = _prices(tenant)
    found = Model.objects.filter(enabled=True).order_by("name")
    return [Offer(model, prices.get(model.name, []), targets.get(model.name, [])) for model in found]


def usual(offers: list[Offer]) -> Offer | None:
    """The one that examples call: the first that is served, else the first."""
    return next((offer for offer in offers if offer.targets), offers[0] if offers else None)


def _prices(tenant: Tenant) -> dict[str, list[Price]]:
    """By model: of each target the price that counts now for `tenant`, its own before everybody's."""
    rows = Price.objects.in_force().filter(Q(tenant="") | Q(tenant=tenant.pk), currency=tenant.currency)
    best: dict[tuple[str, str], Price] = {}
    for price in rows.filter(effective_from__lte=timezone.now()).order_by("tenant", "effective_from"):
        best[price.model, price.target] = price  # the tenant's own and the latest come last
    found: dict[str, list[Price]] = {}
    for (model, _), price in sorted(best.items()):
        found.setdefault(model, []).append(price)
    return found
