"""The fleet page: what it shows, what it asks for, and the drain it asks about and puts on record."""

import json
import time
from collections.abc import Iterator

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from engines.load.figures import KEY, Fleet, Load, Need, Report, State, encode
from engines.models import Pool, Replica
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        yield client


@pytest.fixture
def replica() -> Replica:
    return Replica.objects.create(pool=Pool.objects.create(name="gpu", model="m"), name="r1", url="http://10.0.0.1:1")


def signed_in(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("olga", "olga@example.com", "a long password"))
    return client


def publish(client: "redis.Redis", age: float = 0) -> None:
    now = int((time.time() - age) * 1000)
    report = Report(State.READY, is_up=True, at=now, load=Load(running=3, kv_used=0.5, retractions=2))
    client.set(KEY, encode(Fleet(now, {"gpu/r1": report}, {"gpu": Need(2, 1, 1)})))


def test_it_shows_each_replica_s_state_and_load(client: Client, valkey: "redis.Redis", replica: Replica) -> None:
    signed_in(client).get("/admin/fleet/")  # the first page takes longer than a load is fresh
    publish(valkey)
    found = client.get("/admin/fleet/state").json()
    (pool,) = found["pools"]
    (row,) = pool["replicas"]
    assert (pool["desired"], row["state"], row["running"], row["kv_used"], row["waiting"]) == (2, "ready", 3, 0.5, None)
    page = client.get("/admin/fleet/").content.decode()
    assert '"retractions": ' in page
    assert "headrace/fleet/page.js" in page


def test_it_shows_nothing_stale_as_if_it_were_known(client: Client, valkey: "redis.Redis", replica: Replica) -> None:
    publish(valkey, age=5)
    row = signed_in(client).get("/admin/fleet/state").json()["pools"][0]["replicas"][0]
    assert (row["state"], row["running"]) == ("ready", None)
    valkey.delete(KEY)
    found = client.get("/admin/fleet/state").json()
    assert found["pools"][0]["replicas"][0]["state"] == "unknown"
    assert "No collector runs" in found["problem"]


def test_it_drains_by_a_post_that_the_audit_trail_has(client: Client, replica: Replica) -> None:
    signed_in(client).post(f"/admin/fleet/replicas/{replica.pk}/drain", {"wanted": "0"})
    replica.refresh_from_db()
    assert not replica.enabled
    entry = AuditEntry.objects.filter(subject__contains="engines_replica").latest("id")
    assert entry.who == "olga"
    assert json.loads(json.dumps(entry.after)) == {"enabled": False}
    assert client.get(f"/admin/fleet/replicas/{replica.pk}/drain").status_code == 405
    client.post(f"/admin/fleet/replicas/{replica.pk}/drain", {"wanted": "1"})
    replica.refresh_from_db()
    assert replica.enabled


def test_it_is_for_operators_alone(client: Client, replica: Replica) -> None:
    assert client.get("/admin/fleet/").status_code == 302
    client.force_login(User.objects.create_user("sam", is_staff=True))
    assert client.get("/admin/fleet/").status_code == 200
    assert client.post(f"/admin/fleet/replicas/{replica.pk}/drain", {"wanted": "0"}).status_code == 403
