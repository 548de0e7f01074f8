"""Sizing from what the ledger says happened."""

import json
from datetime import timedelta
from io import StringIO
from zoneinfo import ZoneInfo

import pytest
from django.core.management import CommandError, call_command

from engines.sizing.errors import BadValue, UnknownName
from headrace.console.sizing.tests.ledger import full_hour, write
from headrace.console.sizing.usage import measure
from routing.models import Model
from tenants.models import Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    Model.objects.create(name="small-chat", context_window=32_768, default_max_tokens=1024)
    return Tenant.objects.create(slug="acme", name="Acme", currency="EUR", time_zone="Asia/Kolkata")


def test_it_measures_lengths_rate_and_cache_share(acme: Tenant) -> None:
    now = full_hour()
    write(now - timedelta(hours=30), 40)
    write(now - timedelta(hours=5), 120)
    measured = measure("acme", days=14)
    assert measured.requests == 160
    assert measured.prompt == 1500
    assert measured.prompt_cv == 0
    assert measured.output == pytest.approx(300)
    assert measured.output_cv == pytest.approx(1 / 3, rel=0.01)
    assert measured.cached == pytest.approx(1 / 3)
    assert measured.rate == pytest.approx(120 / 3600, rel=0.5)  # a half-hour zone splits the sixty minutes in two
    assert measured.busiest_minute >= measured.rate


def test_it_takes_the_tenants_own_hours(acme: Tenant) -> None:
    start = (full_hour() - timedelta(days=2)).replace(hour=9, minute=30)  # 15:00 in Kolkata
    write(start, 72)
    measured = measure("acme", days=14)
    assert measured.shares.index(max(measured.shares)) == 15
    assert measured.busiest_hour.astimezone(ZoneInfo("Asia/Kolkata")).hour == 15
    assert measured.rate == pytest.approx(72 / 3600)
    assert sum(measured.shares) * measured.rate * 3600 * measured.days == pytest.approx(72)


def test_it_leaves_out_what_did_no_work_and_what_is_not_over(acme: Tenant) -> None:
    now = full_hour()
    write(now - timedelta(hours=3), 30)
    write(now - timedelta(hours=3), 30, kind="shadow")
    write(now - timedelta(hours=3), 30, status="abandoned", input_tokens=0, cached_input_tokens=0, output_tokens=0)
    write(now - timedelta(days=20), 30)
    write(now - timedelta(hours=3), 30, tenant="globex")
    assert measure("acme", days=14).requests == 30


def test_it_measures_a_model_over_all_tenants(acme: Tenant) -> None:
    for tenant in ("acme", "globex"):
        write(full_hour() - timedelta(hours=4), 24, tenant=tenant)
    measured = measure("small-chat", days=14)
    assert (measured.of, measured.requests, measured.zone) == ("model small-chat", 48, "UTC")
    assert measure("model:small-chat", days=14).requests == 48


def test_it_knows_the_card_of_a_model_by_its_public_name(acme: Tenant) -> None:
    Model.objects.create(name="qwen3-8b", context_window=32_768, default_max_tokens=1024)
    write(full_hour() - timedelta(hours=4), 24, model="qwen3-8b")
    write(full_hour() - timedelta(hours=4), 24)
    assert measure("qwen3-8b", days=14).fields()["model"] == "qwen3-8b"
    assert "model" not in measure("small-chat", days=14).fields()


def test_it_refuses_unknown_names_with_near_ones_and_empty_ledgers(acme: Tenant) -> None:
    with pytest.raises(UnknownName, match="small-chat"):
        measure("smal-chat", days=14)
    with pytest.raises(UnknownName, match="acme"):
        measure("tenant:acne", days=14)
    with pytest.raises(BadValue, match="no requests"):
        measure("acme", days=14)


def test_the_command_sizes_for_it_with_growth(acme: Tenant) -> None:
    write(full_hour() - timedelta(days=1), 90)
    out = StringIO()
    call_command("size", from_usage="acme", days=7, growth="10", gpu="l40s", weights="fp8", json=True, stdout=out)
    found = json.loads(out.getvalue())
    assert found["parameters"]["prompt"] == 1500
    assert found["parameters"]["cached"] == pytest.approx(1 / 3)
    assert found["parameters"]["rate"] == pytest.approx(10 * measure("acme", days=7).rate)
    assert any("from the ledger of tenant acme" in line for line in found["assumptions"])
    assert found["verdict"]["gpus"] >= 1


def test_the_command_says_what_is_wrong(acme: Tenant) -> None:
    with pytest.raises(CommandError, match="did you mean"):
        call_command("size", from_usage="acmee", stdout=StringIO())
    with pytest.raises(CommandError, match="no requests"):
        call_command("size", from_usage="acme", stdout=StringIO())
