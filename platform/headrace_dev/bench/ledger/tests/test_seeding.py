"""What is seeded is as if it had been drained: the books agree."""

from collections.abc import Iterator

import pytest
import redis
from django.conf import settings
from django.db import connection

from billing.invoicing.records import first_records, records_behind
from billing.ledger_check.registry import CHECKS
from billing.models import InvoiceLine, UsageHour, UsageRecord
from billing.usage import admitted_ms
from headrace_dev.bench.benchmark import BenchmarkFailed
from headrace_dev.bench.ledger import closing, rollups
from headrace_dev.bench.ledger.seeding.seeding import seed
from headrace_dev.bench.ledger.seeding.size import Size
from tenants.models import ApiKey, Tenant


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        yield client


def test_it_makes_as_many_as_asked_for_over_two_months(seeded: Size) -> None:
    assert UsageRecord.rows.count() == seeded.records
    assert (Tenant.objects.count(), ApiKey.objects.count()) == (seeded.tenants, seeded.keys)
    times = list(UsageRecord.rows.order_by("admitted_at").values_list("admitted_at", "request_id"))
    assert seeded.start == times[0][0] <= times[-1][0] < seeded.end
    assert all(round(at.timestamp() * 1000) == admitted_ms(request_id) for at, request_id in times)
    assert set(UsageHour.objects.values_list("key", flat=True)) == set(ApiKey.objects.values_list("pk", flat=True))


def test_the_ledgers_partitions_are_whole_again(seeded: Size) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.inhrelid::regclass::text, (SELECT count(*) FROM pg_index WHERE indrelid = i.inhrelid),"
            " (SELECT count(*) FROM pg_trigger WHERE tgrelid = i.inhrelid),"
            " (SELECT count(*) FROM pg_constraint WHERE conrelid = i.inhrelid)"
            " FROM pg_inherits AS i WHERE i.inhparent = 'billing_usagerecord'::regclass"
        )
        parts = {name: tuple(counts) for name, *counts in cursor.fetchall()}
    assert len(parts) >= 4
    assert len(set(parts.values())) == 1, parts


@pytest.mark.parametrize("name", ["records", "costs", "hours", "days", "hour_costs", "target_hours"])
def test_the_books_agree(seeded: Size, valkey: "redis.Redis", name: str) -> None:
    outcome = CHECKS[name].run(valkey)
    assert outcome.compared > 0
    assert outcome.differences == []


def test_the_benchmark_s_own_checks_pass_and_fail(seeded: Size) -> None:
    assert rollups.measure(seeded.tenants, print).rows
    assert closing.measure(seeded.tenants, print).rows
    hour = UsageHour.objects.of("tenant-0").first()
    assert hour is not None
    UsageHour.objects.filter(pk=hour.pk).update(output_tokens=hour.output_tokens + 1)
    try:
        with pytest.raises(BenchmarkFailed, match="1 of"):
            rollups.measure(seeded.tenants, print)
    finally:
        UsageHour.objects.filter(pk=hour.pk).update(output_tokens=hour.output_tokens)


@pytest.mark.parametrize("most", [1, 20, 10_000])
def test_the_first_records_behind_a_line_are_found_by_its_hours(seeded: Size, most: int) -> None:
    closing.measure(seeded.tenants, print)
    lines = InvoiceLine.objects.select_related("invoice").filter(kind=InvoiceLine.Kind.USAGE)
    for line in lines.order_by("quantity")[:: max(1, lines.count() // 12)]:
        wanted = [row.pk for row in records_behind(line).kept[:most]]
        assert [row.pk for row in first_records(line, most)] == wanted
        assert wanted


def test_it_refuses_a_database_with_anybodys_data(seeded: Size) -> None:
    with pytest.raises(BenchmarkFailed, match="only an empty installation"):
        seed(seeded, print)
