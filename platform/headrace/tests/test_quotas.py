"""A tenant has no more rows than it may, whoever writes them, and however many at once."""

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from billing.models import Budget, WebhookEndpoint
from tenants import quotas
from tenants.models import Project, Tenant

pytestmark = pytest.mark.django_db


def tenant(slug: str = "acme") -> Tenant:
    return Tenant.objects.create(slug=slug, name=slug, currency="EUR")


def add(name: str, **fields: Any) -> None:
    with transaction.atomic():
        Budget.objects.create(**{"tenant_id": "acme", "name": name, "amount": 1} | fields)


def test_the_defaults_are_those_of_the_triggers() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgargs FROM pg_trigger WHERE tgname LIKE 'headrace_quota_%%'")
        arguments = [bytes(row[0]).split(b"\0") for row in cursor.fetchall()]
    assert {name.decode(): int(most) for name, most, *_ in arguments} == quotas.DEFAULTS
    readme = Path("platform/docs/settings.md").read_text()
    [told] = re.findall(r"^\| `HEADRACE_QUOTAS` .*", readme, re.MULTILINE)
    assert all(f"`{name}`" in told and f"({most:,})" in told for name, most in quotas.DEFAULTS.items())


def test_one_request_counts_in_a_bounded_number_of_budgets() -> None:
    tenant()
    for number in range(8):
        add(f"b{number}")
    add("of-a-model", model="demo")
    with pytest.raises(IntegrityError) as refused:
        add("one-more")
    said = quotas.refusal(refused.value)
    assert said is not None
    assert said.startswith("acme has 8 of at most 8 budgets of one project, key and model. Remove one")


def test_an_operator_lets_one_tenant_have_more(capsys: pytest.CaptureFixture[str]) -> None:
    tenant(), tenant("globex")
    quotas.write_defaults({"webhooks": 1})
    call_command("quotas", "acme", "webhooks=2")
    assert re.search(r"webhooks +2  its own", capsys.readouterr().out)
    for slug, most in [("acme", 2), ("globex", 1)]:
        for number in range(most):
            WebhookEndpoint.objects.create(tenant_id=slug, url=f"https://example.com/{number}", secret=b"")
        with pytest.raises(IntegrityError, match=f"has {most} of at most {most} webhooks"), transaction.atomic():
            WebhookEndpoint.objects.create(tenant_id=slug, url="https://example.com/more", secret=b"")
    call_command("quotas", "acme", "webhooks=")
    assert quotas.most_of("webhooks", "acme") == 1


@pytest.mark.django_db(transaction=True)
def test_no_number_at_once_passes_a_quota() -> None:
    tenant()
    quotas.write_defaults({"projects": 5})
    said: list[str] = []

    def make(number: int) -> None:
        try:
            Project.objects.create(tenant_id="acme", slug=f"p{number}", name="P")
            said.append("made")
        except IntegrityError as error:
            said.append("refused" if quotas.refusal(error) else str(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=make, args=[number]) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (said.count("made"), said.count("refused")) == (5, 7)
    assert Project.objects.count() == 5
