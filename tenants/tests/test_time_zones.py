"""A time zone is a name that Python and PostgreSQL both know; one that is there already and unknown breaks nothing."""

from importlib import import_module
from zoneinfo import available_timezones

import pytest
from django.core.exceptions import ValidationError
from django.db import DataError, connection

from headrace_core.time_zones import check_time_zone, is_listed, zone_named
from tenants.models import Tenant
from tenants.tests.cast import make_tenant, sql

pytestmark = pytest.mark.django_db
MEND = import_module("billing.migrations.0023_known_zones").MEND


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
    [("posix/Asia/Kolkata", "Asia/Kolkata"), ("right/Asia/Kolkata", "Asia/Kolkata"), ("Nowhere/Atlantis", "UTC")],
)
def test_a_zone_that_postgresql_has_lost_is_put_right(name: str, counts: str) -> None:
    make_tenant("acme", time_zone="Europe/Berlin")
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE NONE")
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE tenants_tenant SET time_zone = %s", [name])
        cursor.execute("UPDATE billing_tenantzone SET time_zone = %s", [name])
        cursor.execute("SET LOCAL session_replication_role = origin")
    Tenant.objects.filter(pk="acme").update(name="Acme & Sons")  # all else of it can be changed
    with connection.cursor() as cursor:
        cursor.execute(MEND)
        cursor.execute("SET ROLE headrace_system")
    assert sql("SELECT tenant, time_zone FROM billing_tenantzone") == [("acme", counts)]
    assert Tenant.objects.get().time_zone == counts
    assert zone_named(name).key in {name, "UTC"}


def test_the_database_takes_none_that_it_does_not_know() -> None:
    with pytest.raises(DataError, match="not recognized"):
        make_tenant("acme", time_zone="posix/Asia/Kolkata")
