"""Every page, of many tenants and of the operators: how long it takes, and how many queries it asks."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import reverse

from billing.budgets import counters
from headrace.portal.rows import APP
from headrace_dev.bench.benchmark import Say, Target
from headrace_dev.bench.figures import percentile
from headrace_dev.bench.ledger.addresses import FURTHER, address, shown_to_owners
from headrace_dev.bench.ledger.part import Found, row, spread
from headrace_dev.bench.ledger.seeding.belongings import owner_of
from headrace_dev.bench.ledger.seeding.cast import slug
from tenants.models import Tenant

LIMIT_MS = 150
MOST_QUERIES = 40
MOST_TENANTS = 40
_ADMIN = (
    "admin:index", "fleet:page", "fleet:state", "costs:page", "admin:billing_price_changelist",
    "admin:billing_invoice_changelist", "admin:billing_budget_changelist", "admin:tenants_tenant_changelist",
    "admin:tenants_apikey_changelist", "admin:billing_usagerecord_changelist", "admin:billing_usagehour_changelist",
    "admin:tenants_auditentry_changelist",
)  # fmt: skip
_ADMIN_FURTHER = {
    "costs:page": ("by=hour", "by=month"),
    "admin:billing_usagerecord_changelist": ("tenant={tenant}", "tenant={tenant}&model=model-1"),
    "admin:billing_usagehour_changelist": ("tenant={tenant}",),
    "admin:tenants_tenant_changelist": ("q={tenant}",),
}


@dataclass
class Asked:
    """One page: milliseconds and queries of each answer. `is_file`: it is a download, as long as its contents."""

    times: list[float] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    is_file: bool = False
    failed: int = 0


def measure(tenants: int, say: Say) -> Found:
    """The portal's pages, then the operators'."""
    found = Found()
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        began = time.monotonic()
        made = counters.keep(client)  # as the worker does each second
        taken = time.monotonic() - began
    found.rows.append(row("budgets' counters made anew", count=made, seconds=taken))
    names = spread([slug(number) for number in range(tenants)], MOST_TENANTS)
    chosen = sorted(Tenant.objects.filter(slug__in=names), key=lambda tenant: names.index(tenant.pk))
    for kind, opened_by in (("portal", portal_pages), ("admin", admin_pages)):
        pages = opened_by(chosen)
        for name, asked in pages.items():
            line = row(f"{kind} {name}", count=len(asked.times), times=asked.times)
            found.rows.append(line | {"queries": max(asked.queries)})
        found.targets += _targets(kind, pages)
        say(f"{kind}: {len(pages)} pages; {found.targets[-3]}")
    return found


def _targets(kind: str, pages: dict[str, Asked]) -> list[Target]:
    """Of the slowest page, and of the one that asks most; a download takes as long as what is in it."""
    p95 = {name: percentile(asked.times, 95) for name, asked in pages.items() if not asked.is_file}
    queries = {name: max(asked.queries) for name, asked in pages.items()}
    slowest, most = max(p95, key=p95.__getitem__), max(queries, key=queries.__getitem__)
    return [
        Target(f"p95 ms, slowest page of the {kind} ({slowest})", p95[slowest], LIMIT_MS),
        Target(f"answers of the {kind} other than 200", sum(asked.failed for asked in pages.values()), 0),
        Target(f"queries, most of a page of the {kind} ({most})", queries[most], MOST_QUERIES),
    ]


def portal_pages(tenants: list[Tenant]) -> dict[str, Asked]:
    """Each page, and each of FURTHER, opened by the owner of each tenant."""
    pages: dict[str, Asked] = {}
    for number, tenant in enumerate(tenants):
        client = signed_in(owner_of(tenant.pk))
        for name, page in shown_to_owners().items():
            url = address(page, tenant)
            for query in ("", *FURTHER.get(name, ())):
                if number == 0:
                    ask(client, url, query)  # templates are read the first time
                opened(pages.setdefault(called(name, query), Asked()), client, url, query)
    return pages


def admin_pages(tenants: list[Tenant]) -> dict[str, Asked]:
    """Each page as often as there are tenants, and of each of them where a page may be narrowed to one."""
    operator = "operator@bench.example"
    if not User.objects.filter(username=operator).exists():
        User.objects.create_superuser(operator, operator, None)
    client, pages = signed_in(operator), dict[str, Asked]()
    for name in _ADMIN:
        for query in ("", *_ADMIN_FURTHER.get(name, ())):
            for number, tenant in enumerate(tenants):
                of_tenant = query.format(tenant=tenant.pk)
                if number == 0:
                    ask(client, reverse(name), of_tenant)
                opened(pages.setdefault(called(name, query), Asked()), client, reverse(name), of_tenant)
    return pages


def called(name: str, query: str) -> str:
    return f"{name}?{query}" if query else name


def signed_in(username: str) -> Client:
    client = Client(SERVER_NAME="localhost", raise_request_exception=False)
    client.force_login(User.objects.get(username=username), backend=settings.AUTHENTICATION_BACKENDS[0])
    return client


def opened(asked: Asked, client: Client, url: str, query: str) -> None:
    with counted() as queries:
        began = time.perf_counter()
        answer = ask(client, url, query)
        asked.times.append((time.perf_counter() - began) * 1000)
    asked.failed += answer.status_code != HTTPStatus.OK
    asked.is_file = answer.has_header("Content-Disposition")
    asked.queries.append(len(queries))


def ask(client: Client, url: str, query: str = "") -> HttpResponseBase:
    answer = client.get(called(url, query))
    answer.close()  # events without end
    return answer


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements of the connections that pages ask."""
    statements: list[str] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        return execute(sql, parameters, many, context)

    with ExitStack() as stack:
        for alias in ("default", APP):
            stack.enter_context(connections[alias].execute_wrapper(note))
        yield statements
