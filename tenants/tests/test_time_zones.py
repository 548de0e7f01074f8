"""A time zone is a name that Python and PostgreSQL both know; one that is there already and unknown breaks nothing."""

from zoneinfo import available_timezones

import pytest
from django.core.exceptions import ValidationError

from tenants.tests.cast import make_tenant, sql
from tenants.time_zones import check_time_zone, is_listed, zone_named

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "name",
    [
        "localtime",
        "posixrules",
        "Factory",
        "posix/UTC",
        "right/UTC",
        "EST5EDT4,M3.2.0",
        "",
        "UTC\x00",
        "../UTC",
        "Mars",
    ],
)
def test_it_refuses_what_one_of_the_two_does_not_know(name: str) -> None:
    with pytest.raises(ValidationError, match="is not a time zone of the IANA list"):
        check_time_zone(name)


def test_whatever_it_takes_postgresql_can_reckon_with() -> None:
    taken = []
    for name in sorted(available_timezones()):
        try:
            check_time_zone(name)
            taken.append(name)
        except ValidationError:
            continue
    assert len(taken) > 400
    sql("SELECT count(now() AT TIME ZONE name) FROM unnest(%s::text[]) AS name", taken)
    assert all(map(is_listed, taken))


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("Europe/Berlin", "Europe/Berlin"), ("posix/Asia/Kolkata", "Asia/Kolkata"), ("Nowhere/Atlantis", "UTC"),
        ("right/Asia/Kolkata", "Asia/Kolkata"),
    ],
)  # fmt: skip
def test_a_period_is_in_a_zone_that_postgresql_knows(name: str, counts: str) -> None:
    make_tenant("acme", time_zone=name)
    assert sql("SELECT time_zone FROM billing_tenantzone WHERE tenant = 'acme'") == [(counts,)]
    assert zone_named("Nowhere/Atlantis").key == "UTC"
