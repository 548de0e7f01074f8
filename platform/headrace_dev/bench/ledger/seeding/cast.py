"""The tenants: few large ones and many small, each with projects, keys and belongings."""

from dataclasses import dataclass

from django.db import transaction

from billing.models import LegalEntity
from headrace_core import audit
from headrace_dev.bench.ledger.seeding import belongings
from headrace_dev.bench.ledger.seeding.size import Size
from tenants import keys
from tenants.api_keys import draft_key
from tenants.models import ApiKey, Project, Tenant
from tenants.projects import draft_project

CURRENCIES = ("EUR", "USD")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu")


@dataclass(frozen=True)
class Caller:
    """A key, and how much it asks: its share of all requests is its weight's of all weights."""

    tenant: Tenant
    project: str
    key: str
    weight: float


def slug(number: int) -> str:
    return f"tenant-{number}"


def share_of(number: int, size: Size) -> float:
    """The tenant's share of keys and of use, beside the other tenants'; that of the n-th is about 1 / n."""
    return 1 / (number + max(1, size.tenants // 100))


def keys_of_each(size: Size) -> list[int]:
    """How many keys each tenant has, the largest first: one at least, `size.keys` together."""
    shares = [share_of(number, size) for number in range(size.tenants)]
    free = size.keys - size.tenants
    counts = [1 + int(free * share / sum(shares)) for share in shares]
    for number in range(size.keys - sum(counts)):
        counts[number % size.tenants] += 1
    return counts


def make(size: Size) -> list[Caller]:
    """Write all of them; who calls, the largest tenant's first."""
    with transaction.atomic(), audit.acting(who="bench", origin="bench seed"):
        entity = LegalEntity.objects.create(slug="bench", name="Bench Ltd", invoice_prefix="BENCH-")
        tenants = Tenant.objects.bulk_create(_tenant(number, size) for number in range(size.tenants))
        callers = []
        for number, (tenant, count) in enumerate(zip(tenants, keys_of_each(size), strict=True)):
            found = _keys(number, tenant, count, share_of(number, size))
            belongings.make(tenant, entity, [caller.key for caller in found])
            callers += found
    return callers


def _tenant(number: int, size: Size) -> Tenant:
    return Tenant(
        slug=slug(number),
        name=f"Tenant {number}",
        currency=CURRENCIES[number % len(CURRENCIES)],
        time_zone=ZONES[number // len(CURRENCIES) % len(ZONES)],
        created_at=size.start,
    )


def _keys(number: int, tenant: Tenant, count: int, share: float) -> list[Caller]:
    names = [f"project-{place}" for place in range(min(2 + count // 12, count))]
    projects = Project.objects.bulk_create(draft_project(tenant=tenant, slug=name, name=name) for name in names)
    rows, callers = [], []
    for place in range(count):
        project, minted = projects[place % len(projects)], keys.mint(f"seed{number:04d}{place:04d}")
        concurrency = 100 if place % 4 == 0 else None
        rows.append(draft_key(project=project, name=f"key-{place}", minted=minted, concurrency=concurrency))
        callers.append(Caller(tenant, project.slug, minted.public_id, share / (place + 2)))
    ApiKey.objects.bulk_create(rows)
    return callers
