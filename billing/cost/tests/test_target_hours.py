"""The hours of targets, kept by the drain beside the tenants' hours."""

import pytest

from billing.drain import drain_all
from billing.models import TargetHour, UsageHour
from billing.rebuilding import target_hours
from billing.tests.stream import append, connect, usage_event

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_adds_up_what_all_tenants_did_at_a_target_whatever_became_of_it() -> None:
    events = [
        usage_event(),
        usage_event(tenant="globex", status="cancelled"),
        usage_event(kind="shadow", status="incomplete"),
        usage_event(target="other"),
    ]
    with connect() as valkey:
        for _ in range(2):  # the second time, nothing is new
            append(valkey, *events)
            drain_all(valkey)
    found = {
        row.target: (row.input_tokens, row.cached_input_tokens, row.output_tokens) for row in TargetHour.objects.all()
    }
    assert found == {"local": (300, 120, 21), "other": (100, 40, 7)}
    before = list(TargetHour.objects.order_by("target").values_list("target", "hour", "output_tokens", "cost"))
    assert UsageHour.objects.count() == 4
    assert target_hours() == 2
    assert list(TargetHour.objects.order_by("target").values_list("target", "hour", "output_tokens", "cost")) == before
